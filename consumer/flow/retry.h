// Which failure of a handler is tried again. Pure; any thread.
#pragma once

#include "consumer/flow/ports.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// Whether a failure may be tried again at all. A class that `retry_on` names exactly beats a
// hundred in `never`; otherwise `never` wins.
bool MayRetry(const HandlerOptions& handler, const RetryOptions& retry,
              const HandlerFailure& failure);

}  // namespace fencepost::consumer
