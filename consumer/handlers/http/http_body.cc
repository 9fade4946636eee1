#include "consumer/handlers/http/http_body.h"

#include <utility>

#include "consumer/handlers/jq/jq_handler.h"
#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

tl::expected<HttpBodyRule, Error> HttpBodyRule::Make(const HttpHandlerOptions& options) {
  HttpBodyRule rule;
  rule.body_ = options.body;
  if (options.method == "GET" || options.method == "HEAD") rule.body_ = HttpBody::kNone;
  if (rule.body_ != HttpBody::kJq) return rule;
  auto program = JqHandler::Make(options.body_program, "handler.http.body.jq");
  if (!program) return tl::unexpected(std::move(program.error()));
  rule.program_ = std::move(*program);
  return rule;
}

tl::expected<std::optional<std::string>, HandlerFailure> HttpBodyRule::Of(const HandlerCall& call) {
  if (body_ == HttpBody::kNone) return std::nullopt;
  if (body_ == HttpBody::kValue) return std::optional<std::string>(call.record.value);
  HandlerResult made = program_->Handle(RequestOf(call, call.record), {});
  if (!made) {
    made.error().asked = false;
    return tl::unexpected(std::move(made.error()));
  }
  if (made->size() == 1) return std::move(made->front()).value_or("null");
  return tl::unexpected(RefusedRecord(
      made->empty() ? "the program of handler.http.body gives no result, and needs one"
                    : "the program of handler.http.body gives several results, and needs one"));
}

}  // namespace fencepost::consumer
