#include "consumer/handlers/runner.h"

#include "locking/base/planted.h"

namespace fencepost::consumer {

bool LeaseHasEnded(Instant valid_until) {
  return locking::ReadClocks().boot >= valid_until && !Planted("late_call_goes_out");
}

}  // namespace fencepost::consumer
