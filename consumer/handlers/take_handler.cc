#include "consumer/handlers/take_handler.h"

#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

HandlerResult TakeHandler::Handle(const HandlerRequest& request, const std::stop_token& /*stop*/) {
  if (!request.record->value) return HandlerValues{std::nullopt};
  json_.Begin(*request.record->value);
  std::string part;
  switch (json_.AppendBytes(part_.argument, part)) {
    case JsonFound::kValue:
      return HandlerValues{std::move(part)};
    case JsonFound::kNull:
      return HandlerValues{std::nullopt};
    case JsonFound::kMalformed:
      return tl::unexpected(NotJson(json_.problem(), ""));
    case JsonFound::kNothing:
      break;
  }
  if (part_.optional) return HandlerValues{std::nullopt};
  const std::string text = fmt::format("{} finds nothing in the value", part_.Text());
  return tl::unexpected(
      HandlerFailure{.error_class = "bad_record", .text = text, .shown = text, .retry = false});
}

}  // namespace fencepost::consumer
