// Failures that every runner can answer with.
#pragma once

#include <fmt/format.h>

#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

inline constexpr std::size_t kMaxAnswerBytes = 16u << 20;

inline HandlerResult Cancelled() {
  return tl::unexpected(HandlerFailure{.error_class = "cancelled",
                                       .text = "the call was cancelled",
                                       .shown = "the call was cancelled"});
}

inline HandlerResult TimedOut(Millis limit) {
  const std::string text = fmt::format("no answer within {} ms", limit.count());
  return tl::unexpected(HandlerFailure{.error_class = "timeout", .text = text, .shown = text});
}

inline HandlerResult TooLarge(std::string_view what) {
  const std::string text = fmt::format("{} is larger than {} MiB", what, kMaxAnswerBytes >> 20);
  return tl::unexpected(
      HandlerFailure{.error_class = "too_large", .text = text, .shown = text, .retry = false});
}

}  // namespace fencepost::consumer
