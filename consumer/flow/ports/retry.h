// Whether the class of a handler's failure may be retried, and after which wait. Until when:
// HandlerCalls::OnFailed. Pure; any thread.
#pragma once

#include <algorithm>
#include <cmath>

#include "consumer/flow/ports/ports.h"
#include "consumer/pipeline/error_class.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// FailedRecord::why of one whose row the output refuses for a rule between rows.
inline constexpr const char* kRefusedForOthers = "output.constraint";

// How `never` names the failure. By 4xx it names no answer about the caller: no record is at fault.
inline ClassMatch NamedNever(const RetryOptions& retry, const std::string& error_class) {
  const ClassMatch match = MatchClass(retry.never, error_class);
  const bool caller = error_class.starts_with('4') && IsAboutTheCaller(error_class);
  return match == ClassMatch::kStatusClass && caller ? ClassMatch::kNone : match;
}

// An exact code in `retry_on` overrides a class such as 4xx in `never`; otherwise `never` wins. A
// service that was not reached at all says nothing about the record.
inline bool MayRetry(const HandlerOptions& handler, const RetryOptions& retry,
                     const HandlerFailure& failure) {
  if (!failure.reached) return true;
  if (!failure.retry) return false;
  if (retry.attempts == 1 && !IsAboutTheCaller(failure.error_class)) return false;
  const ClassMatch never = NamedNever(retry, failure.error_class);
  if (never != ClassMatch::kStatusClass) return never == ClassMatch::kNone;
  const auto* http = std::get_if<HttpHandlerOptions>(&handler.kind);
  return http != nullptr && MatchClass(http->retry_on, failure.error_class) == ClassMatch::kExact;
}

// An HTTP status, by which a service may refuse every record, as one at a wrong address does; but
// for one that the user calls final (`never`).
inline bool MayBeOfAll(const HandlerOptions& handler, const RetryOptions& retry,
                       const HandlerFailure& failure) {
  return std::holds_alternative<HttpHandlerOptions>(handler.kind) && !failure.retry &&
         MatchClass({"1xx", "2xx", "3xx", "4xx", "5xx"}, failure.error_class) !=
             ClassMatch::kNone &&
         NamedNever(retry, failure.error_class) == ClassMatch::kNone;
}

// The service itself says that it serves nobody now, or not this caller.
inline bool SaysUnavailable(const HandlerFailure& failure) {
  return failure.error_class == "429" || failure.error_class == "503" ||
         IsAboutTheCaller(failure.error_class);
}

// The pause after this many failures: exponential, with full jitter or none.
inline Millis RetryBackoff(const RetryOptions& retry, int failures, std::uint64_t random) {
  const double grown =
      static_cast<double>(retry.initial.count()) * std::pow(retry.multiplier, failures - 1);
  const double most = std::min(static_cast<double>(retry.max.count()), grown);
  const double share =
      retry.jitter == Jitter::kFull ? static_cast<double>(random >> 11) * 0x1p-53 : 1.0;
  return Millis(static_cast<std::int64_t>(most * share));
}

}  // namespace fencepost::consumer
