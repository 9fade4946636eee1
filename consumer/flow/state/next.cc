#include "consumer/flow/state/next.h"

#include "consumer/flow/state/lock_unit.h"

namespace fencepost::consumer {

namespace {

// In the leased prefix: it has what it needs, and nothing was done yet under this lease.
Move Enter(const InFlight& in, const Way& way) {
  const bool ledger = way.finality == Finality::kLedger;
  if (in.call != 0) return Move::kAwaitFormerCall;
  if (FoundDone(in) && !ledger) return Move::kCompleteFromMark;
  if (in.letter != nullptr) return Move::kStartDeadLetter;
  if (ledger && way.outside) return Move::kLookUp;
  if (way.handler && !in.handled) return Move::kAwaitTurn;
  return Move::kAwaitOrder;
}

Move Queued(const InFlight& in, const Place& place, const Way& way) {
  if (!place.may_lock || place.before == Before::kNotSoon) return Move::kStay;
  if (!in.without_id) return Move::kLock;
  // There is nothing to lock: it only waits for its place.
  return place.before == Before::kInPrefix ? Enter(in, way) : Move::kAwaitPrefix;
}

Move Granted(const InFlight& in, const Place& place, const Way& way) {
  switch (place.before) {
    case Before::kInPrefix:
      return Enter(in, way);
    case Before::kMaySoon:
      return in.stage() == Stage::kGranted ? Move::kStay : Move::kAwaitPrefix;
    case Before::kNotSoon:
      return Move::kGiveBack;
  }
  return Move::kStay;
}

}  // namespace

Move Next(const InFlight& in, const Place& place, const Way& way) {
  switch (in.stage()) {
    case Stage::kQueued:
      return Queued(in, place, way);
    case Stage::kLocking:
      return Leased(in) || FoundDone(in) ? Granted(in, place, way) : Move::kStay;
    case Stage::kGranted:
      return Granted(in, place, way);
    case Stage::kWaiting:
      return in.call == 0 && place.before_handled ? Move::kTakeTurn : Move::kStay;
    case Stage::kHandled:
      return place.before_handled ? Move::kJoinWrites : Move::kStay;
    default:
      return Move::kStay;
  }
}

}  // namespace fencepost::consumer
