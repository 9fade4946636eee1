#include "config/read/defaults.h"

#include <algorithm>

#include "locking/core/options.h"

namespace fencepost::config {

using namespace std::chrono_literals;

std::span<const Text> LockNodes(const Values& values) { return values.Texts("lock.redis.nodes"); }

bool HasLedger(const Values& values) {
  return values.Given("output.postgres") || values.Given("output.mysql") ||
         values.Given("output.sqlite");
}

bool ByPosition(const Values& values) {
  const auto id = values.Selectors("record_id");
  return id.empty() || id.front().kind == consumer::Selector::Kind::kPosition;
}

bool SharesLocks(const Values& values) {
  // A replay has its original's id: its transaction does not tell that it was done.
  const bool moves_offsets =
      values.Given("output.kafka") && values.Number("kafka.accept_replay_ids") == 0;
  return ByPosition(values) && (HasLedger(values) || moves_offsets);
}

locking::Contact LockContact(const Values& values) {
  const bool marks_decide = !HasLedger(values) && !SharesLocks(values);
  return marks_decide ? locking::Contact::kAll : locking::Contact::kQuorum;
}

Milliseconds LeastRememberDone(const Values& values) {
  const Milliseconds ttl = values.Duration("lock.ttl");
  return std::max(locking::LockOptions{}.max_ttl, ttl) + 2 * values.Duration("lock.max_skew");
}

std::int64_t MaxInFlight(const Values& values) {
  if (values.Find("processing.max_in_flight") == nullptr && values.Given("output.kafka")) {
    return 2 * values.Number("output.kafka.max_records");
  }
  return values.Number("processing.max_in_flight");
}

bool DeadLetters(const Values& values, std::string_view path) {
  return values.Find(path) != nullptr ? values.String(path) == "dead_letter"
                                      : values.Given("dead_letter");
}

}  // namespace fencepost::config
