#include "consumer/handlers/http/http_rules.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/jq/jq_handler.h"
#include "consumer/handlers/runner.h"
#include "consumer/json/json_set.h"
#include "consumer/json/json_text.h"
#include "locking/base/planted.h"

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

tl::expected<HttpResultRule, Error> HttpResultRule::Make(const HttpHandlerOptions& options) {
  HttpResultRule rule;
  rule.result_ = options.result;
  if (rule.result_ == HttpResult::kMerge) {
    rule.pointer_ = options.result_pointer;
    rule.answer_levels_ =
        kMostJsonLevels - static_cast<int>(std::ranges::count(rule.pointer_, '/'));
  }
  if (rule.result_ == HttpResult::kJq) {
    rule.answer_levels_ = kMostJsonLevels - 1;
    auto program = JqHandler::Make(options.result_program, "handler.http.result.jq");
    if (!program) return tl::unexpected(std::move(program.error()));
    rule.program_ = std::move(*program);
  }
  return rule;
}

std::optional<HandlerFailure> HttpResultRule::Refusal(const HandlerCall& call) {
  if (result_ == HttpResult::kMerge) {
    HandlerResult merged = Merged(call, "null");
    if (!merged) return std::move(merged.error());
  }
  if (result_ == HttpResult::kJq) {
    const std::string_view value = call.record.value.value_or("null");
    const std::string_view why = JsonProblem(value, answer_levels_);
    if (!why.empty()) return NotJson(why, "handler.http.result reads it");
  }
  return std::nullopt;
}

HandlerResult HttpResultRule::Apply(const HandlerCall& call, std::optional<std::string> answer) {
  if (result_ == HttpResult::kReplace) return HandlerValues{std::move(answer)};
  if (result_ == HttpResult::kKeep) {
    return HandlerValues{std::optional<std::string>(call.record.value)};
  }
  const auto document = answer && !answer->empty() ? std::string_view(*answer) : "null";
  const std::string_view why = JsonProblem(document, answer_levels_);
  if (!why.empty() && !Planted("bad_answer_counts")) {
    const std::string text = fmt::format("the answer is not valid JSON: {}", why);
    return tl::unexpected(HandlerFailure{.error_class = "bad_answer", .text = text, .shown = text});
  }
  return result_ == HttpResult::kMerge ? Merged(call, Trimmed(document)) : Computed(call, document);
}

HandlerResult HttpResultRule::Merged(const HandlerCall& call, std::string_view answer) {
  if (!call.record.value) {
    return tl::unexpected(
        RefusedRecord("the value is null, and handler.http.result merges into it"));
  }
  auto merged = SetJsonPart(*call.record.value, pointer_, answer);
  if (!merged) {
    return tl::unexpected(RefusedRecord(
        fmt::format("{} (handler.http.result merges into {})", merged.error(), pointer_)));
  }
  if (Planted("answer_replaces_the_record")) return HandlerValues{std::string(answer)};
  if (merged->size() > kMaxAnswerBytes) return TooLarge("the value with the answer merged into it");
  return HandlerValues{std::move(*merged)};
}

HandlerResult HttpResultRule::Computed(const HandlerCall& call, std::string_view answer) {
  const std::string both =
      fmt::format(R"({{"record":{},"answer":{}}})", call.record.value.value_or("null"), answer);
  Record record = call.record;
  record.value = both;
  return program_->Handle(RequestOf(call, record), {});
}

}  // namespace fencepost::consumer
