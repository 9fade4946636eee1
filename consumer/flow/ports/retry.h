// Which failure of a handler is tried again. Pure; any thread.
#pragma once

#include "consumer/flow/ports/ports.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// Whether a failure may be tried again at all. A class that `retry_on` names exactly beats a
// hundred in `never`; otherwise `never` wins.
inline bool MayRetry(const HandlerOptions& handler, const RetryOptions& retry,
                     const HandlerFailure& failure) {
  if (!failure.retry) return false;
  const ClassMatch never = MatchClass(retry.never, failure.error_class);
  if (never != ClassMatch::kHundred) return never == ClassMatch::kNone;
  const auto* http = std::get_if<HttpHandlerOptions>(&handler.kind);
  return http != nullptr && MatchClass(http->retry_on, failure.error_class) == ClassMatch::kExact;
}

}  // namespace fencepost::consumer
