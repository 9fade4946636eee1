#include "consumer/flow/retry.h"

namespace fencepost::consumer {

bool MayRetry(const HandlerOptions& handler, const RetryOptions& retry,
              const HandlerFailure& failure) {
  if (!failure.retry) return false;
  const ClassMatch never = MatchClass(retry.never, failure.error_class);
  if (never != ClassMatch::kHundred) return never == ClassMatch::kNone;
  const auto* http = std::get_if<HttpHandlerOptions>(&handler.kind);
  return http != nullptr && MatchClass(http->retry_on, failure.error_class) == ClassMatch::kExact;
}

}  // namespace fencepost::consumer
