#include "tests/model/simulator/sim_letters.h"

#include <algorithm>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

constexpr Millis kFirstBackoff{50};
constexpr Millis kMaxBackoff{1000};
constexpr Millis kLimit{300};
constexpr Millis kMostTime{30};

}  // namespace

void SimLetters::Publish(const std::vector<consumer::DeadLetter>& letters) {
  for (const consumer::DeadLetter& letter : letters) {
    const bool replayed = world_.plan.replays.count() > 0 && !letter.record_id.empty() &&
                          letter.reason != consumer::DeadLetterReason::kIdConflict;
    Attempt({.id = letter.id,
             .source = world_.broker.SourceOf(letter.where, letter.record),
             .replay = replayed ? std::optional(Broker::ReplayOf(letter)) : std::nullopt,
             .epoch = letter.record.epoch,
             .backoff = kFirstBackoff});
  }
}

// Those that nobody has taken yet go no more.
void SimLetters::Drop(const std::vector<std::uint64_t>& ids) {
  const bool failing = !failing_.empty();
  for (const std::uint64_t id : ids) {
    dropped_.insert(id);
    failing_.erase(id);
  }
  if (failing && failing_.empty()) {
    worker_.core().OnDeadLetterState({consumer::PartPhase::kUp, ""}, worker_.process().now());
  }
}

// Once sent, it goes on without the worker.
void SimLetters::Attempt(const Letter& letter) {
  worker_.process().Later(Process::kLetters, world_.HostDelay(), [this, letter] {
    World& world = world_;
    Process& process = worker_.process();
    if (world.faults().letters_refused()) {
      return process.Later(Process::kLetters, 2 * world.NetDelay(),
                           [this, letter] { OnFailed(letter, true); });
    }
    const bool trouble = world.Strikes(Fault::kLetters, world.plan.letter_faults);
    const bool never = trouble && world.random.Chance(500);
    const Nanos takes = world.random.Time(microseconds(200), kMostTime);
    world.time.In(takes,
                  [this, &world, &process, letter, life = process.incarnation(), never, trouble] {
                    if (never) return;
                    world.checks.OnPublished(letter.source,
                                             {process.index, life, letter.epoch, world.time.now()});
                    if (letter.replay) world.broker.OnLetter(*letter.replay);
                    if (trouble || process.incarnation() != life) return;
                    process.Later(Process::kLetters, world.NetDelay(),
                                  [this, id = letter.id] { OnAcknowledged(id); });
                  });
    if (!trouble) return;
    process.Later(Process::kLetters, kLimit, [this, letter, never] { OnFailed(letter, never); });
  });
}

void SimLetters::OnAcknowledged(std::uint64_t id) {
  const locking::Now now = worker_.process().now();
  worker_.core().OnDeadLettered({id}, {}, now);
  if (failing_.erase(id) > 0 && failing_.empty())
    worker_.core().OnDeadLetterState({consumer::PartPhase::kUp, ""}, now);
  worker_.Act();
}

void SimLetters::OnFailed(Letter letter, bool refused) {
  world_.Count("dead letters not acknowledged");
  if (dropped_.erase(letter.id) > 0) return;
  failing_.insert(letter.id);
  if (refused) {
    worker_.core().OnDeadLettered({}, {letter.id}, worker_.process().now());
  }
  worker_.core().OnDeadLetterState({consumer::PartPhase::kDown, "fails"}, worker_.process().now());
  worker_.Act();
  const Nanos wait = letter.backoff;
  letter.backoff = std::min<Nanos>(wait * 2, kMaxBackoff);
  worker_.process().Later(Process::kLetters, wait, [this, letter] {
    if (dropped_.erase(letter.id) == 0) Attempt(letter);
  });
}

}  // namespace fencepost::simulator
