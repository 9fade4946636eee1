#include "consumer/handlers/http/http_answer.h"

#include <utility>

#include <fmt/format.h>

#include "consumer/pipeline/error_class.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kShownBytes = 4096;  // of a body, before it is cut to one line

}  // namespace

HandlerResult ResultOf(const HttpHandlerOptions& options, HttpAnswer answer) {
  const std::string status = std::to_string(answer.status);
  if (MatchClass(options.success, status) != ClassMatch::kNone) {
    if (answer.status == 204 && answer.body.empty()) return HandlerValues{std::nullopt};
    return HandlerValues{std::move(answer.body)};
  }
  return tl::unexpected(HandlerFailure{
      .error_class = status,
      .text = OneLine(fmt::format("HTTP {}{}", status, answer.body.empty() ? "" : ": ") +
                      answer.body.substr(0, kShownBytes)),
      .shown = "HTTP " + status,
      .retry = MatchClass(options.retry_on, status) != ClassMatch::kNone,
      .retry_after = answer.retry_after});
}

}  // namespace fencepost::consumer
