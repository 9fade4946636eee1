#include "consumer/flow/state/next.h"

#include "consumer/flow/state/lock_unit.h"

namespace fencepost::consumer {

namespace {

// In the leased prefix: it has what it needs, and nothing was done yet under this lease.
Move Enter(const InFlight& in, const PipelineTraits& traits) {
  if (in.call != 0) return Move::kAwaitFormerCall;
  if (FoundDone(in) && !traits.write_decides) return Move::kSkipDone;
  if (in.letter != nullptr) return Move::kStartDeadLetter;
  if (traits.HasLedger() && traits.outside) return Move::kLookUp;
  if (traits.handler && !in.handled) return Move::kAwaitTurn;
  return Move::kAwaitOrder;
}

Move Queued(const InFlight& in, const ChainPosition& position, const PipelineTraits& traits) {
  if (!position.may_lock || position.before == Before::kNotSoon) return Move::kStay;
  if (!in.without_id) return Move::kLock;
  // There is nothing to lock: it only waits for its turn.
  return position.before == Before::kInPrefix ? Enter(in, traits) : Move::kAwaitPrefix;
}

Move Granted(const InFlight& in, const ChainPosition& position, const PipelineTraits& traits) {
  switch (position.before) {
    case Before::kInPrefix:
      return Enter(in, traits);
    case Before::kMaySoon:
      return in.stage() == Stage::kGranted ? Move::kStay : Move::kAwaitPrefix;
    case Before::kNotSoon:
      return Move::kGiveBack;
  }
  return Move::kStay;
}

}  // namespace

Move Next(const InFlight& in, const ChainPosition& position, const PipelineTraits& traits) {
  switch (in.stage()) {
    case Stage::kQueued:
      return Queued(in, position, traits);
    case Stage::kLocking:
      return PassedLock(in) ? Granted(in, position, traits) : Move::kStay;
    case Stage::kGranted:
      return Granted(in, position, traits);
    case Stage::kWaiting:
      return in.call == 0 && position.before_handled ? Move::kTakeTurn : Move::kStay;
    case Stage::kHandled:
      return position.before_handled ? Move::kJoinWrites : Move::kStay;
    default:
      return Move::kStay;
  }
}

}  // namespace fencepost::consumer
