#include "tests/model/simulator/plan.h"

#include <array>

namespace fencepost::simulator {
namespace {

using std::chrono::seconds;

constexpr std::array<const char*, kMixes> kNames = {"calm",  "loss",  "pauses",        "crashes",
                                                    "wipes", "jumps", "all but jumps", "all"};

// What the pipeline is: a ledger alone, a handler before it, DONE marks instead, Kafka
// transactions.
enum Kind : std::uint8_t { kPlain, kHandled, kMarks, kTransactions };
constexpr std::array<const char*, kKinds> kKindNames = {"plain", "handled", "marks",
                                                        "transactions"};

template <typename T, std::size_t N>
T Pick(Random& random, const std::array<T, N>& values) {
  return values[static_cast<std::size_t>(random.Below(static_cast<int>(N)))];
}

void DrawTimes(Plan& plan, Random& random) {
  plan.lock.ttl = Millis(Pick(random, std::array{600, 1000, 2000, 5000}));
  plan.lock.min_validity = plan.lock.ttl / 5;
  plan.lock.max_skew = Millis(Pick(random, std::array{100, 500, 1000}));
  plan.lock.node_timeout = Millis(Pick(random, std::array{50, 100, 200}));
  plan.lock.max_ttl = plan.lock.ttl * random.Between(1, 2);
  // A mark replaces whatever stands there, another's lease and the floor too, so it must outlast
  // both.
  const int longest = static_cast<int>((plan.lock.max_ttl + 2 * plan.lock.max_skew).count());
  plan.lock.remember_done = Millis(Pick(random, std::array{longest, 20'000, 300'000}));
  plan.delay = microseconds(Pick(random, std::array{100, 500, 3000}));
  plan.clock_ppm = Pick(random, std::array{0, 100, 2000});
  plan.revoke_drain = Millis(Pick(random, std::array{200, 1000, 5000}));
  plan.write_takes = Millis(Pick(random, std::array{2, 20, 200, 1500}));
  plan.session = Millis(Pick(random, std::array{1500, 4000}));
}

void DrawFlow(Plan& plan, Random& random) {
  plan.flow.pipeline = kPipeline;
  plan.flow.order = Pick(random, std::array{consumer::Order::kPartition, consumer::Order::kKey,
                                            consumer::Order::kNone});
  if (!plan.by_position)
    plan.flow.identity.record_id = {{consumer::Selector::Kind::kHeader, "id", false}};
  plan.flow.on_id_conflict = plan.by_position ? consumer::OnBad::kStop : consumer::OnBad::kSkip;
  plan.flow.max_in_flight = static_cast<std::size_t>(Pick(random, std::array{3, 10, 40, 1000}));
  plan.flow.lock_wait = Millis(Pick(random, std::array{100, 1000, 30'000}));
  plan.flow.remember_done = plan.lock.remember_done;
  plan.flow.commit_interval = Millis(Pick(random, std::array{20, 200, 1000}));
  plan.flow.write_batch = static_cast<std::size_t>(Pick(random, std::array{1, 5, 500}));
  plan.flow.writes_out = static_cast<std::size_t>(random.Between(1, 2));
}

// Waking, and callers beside the flow: two seeds of three.
void DrawWaits(Plan& plan, Random& random) {
  if (random.Chance(333)) return;
  plan.lock.wake_up = random.Chance(700);
  plan.wakes_lost = Pick(random, std::array{0, 100, 500, 1000});
  plan.wakes_late = Pick(random, std::array{0, 100, 500});
  plan.wakes_doubled = Pick(random, std::array{0, 200});
  plan.lock.drift_factor = Pick(random, std::array{0.01, 0.1});
  plan.calls = Millis(Pick(random, std::array{0, 30, 300}));
}

void DrawHandler(Plan& plan, Random& random, Kind kind) {
  consumer::HandlerOptions& handler = plan.flow.handler;
  const int which = random.Below(3);
  if (kind == kHandled || which == 0) {
    handler.kind = consumer::CustomHandlerOptions{};
  } else if (which == 1) {
    handler.kind = consumer::JqHandlerOptions{"."};
  }
  plan.handler_takes = Millis(Pick(random, std::array{1, 20, 300}));
  plan.handler_refusals = Pick(random, std::array{0, 20, 100});
  plan.flow.tuning.concurrency = Pick(random, std::array{1, 3, 64});
  plan.flow.handler_timeout = Millis(Pick(random, std::array{500, 2000, 20'000}));
  plan.flow.tuning.retry.attempts = Pick(random, std::array{1, 3, 8});
  plan.flow.tuning.retry.give_up_after = Millis(Pick(random, std::array{0, 0, 5000}));
  plan.flow.circuit_failures = Pick(random, std::array{0, plan.flow.tuning.retry.attempts});
  plan.flow.tuning.retry.initial = Millis(Pick(random, std::array{5, 50, 200}));
  plan.flow.tuning.retry.max = Millis(1000);
  plan.flow.tuning.retry.never = {"4xx"};
}

void DrawKind(Plan& plan, Random& random, Kind kind) {
  consumer::FlowOptions& flow = plan.flow;
  if (kind != kPlain) DrawHandler(plan, random, kind);
  if (kind == kMarks) flow.finality = consumer::Finality::kDoneMark;
  if (kind == kTransactions) {
    flow.finality = consumer::Finality::kTransaction;
    flow.order = consumer::Order::kPartition;
    flow.writes_out = 1;
    flow.linger = Millis(Pick(random, std::array{0, 20, 100}));
    plan.transaction_timeout = Millis(Pick(random, std::array{800, 3000}));
  }
  if (kind == kPlain && random.Chance(500)) return;
  flow.dead_letters = true;
  flow.on_bad_record = consumer::OnBad::kDeadLetter;
  if (random.Chance(500)) flow.on_id_conflict = consumer::OnBad::kDeadLetter;
  plan.without_id = Pick(random, std::array{0, 30, 100});
  plan.refused = Pick(random, std::array{0, 30, 100});
}

void DrawTrouble(Plan& plan, Random& random, int mix) {
  const auto every = [&random](int low, int high) {
    return random.Time(Millis(low), Millis(high));
  };
  const bool all = mix >= 6;
  if (mix == 1 || all) {
    plan.losses = Pick(random, std::array{2, 10, 30});
    plan.node_stops = every(1500, 6000);
    plan.slow_calls = Pick(random, std::array{0, 5, 30});
    plan.output_faults = Pick(random, std::array{0, 50, 200});
    plan.commit_faults = Pick(random, std::array{0, 100});
    plan.letter_faults = Pick(random, std::array{0, 100, 300});
    plan.aborts = Pick(random, std::array{0, 50, 200});
  }
  if (mix != 0) {
    plan.handler_failures = Pick(random, std::array{0, 50, 300});
    plan.handler_hangs = Pick(random, std::array{0, 10});
  }
  if (mix == 2 || all) plan.pauses = every(300, 3000);
  if (mix == 3 || all) plan.crashes = every(800, 5000);
  if (mix == 2 || mix == 3) plan.output_faults = Pick(random, std::array{0, 100});
  if ((mix == 4 || all) && plan.nodes > 1) plan.wipes = every(1500, 8000);
  if (mix == 5 || mix == 7) plan.jumps = every(1000, 6000);
  if (mix != 0) plan.rebalances = random.Chance(500) ? every(1000, 6000) : Nanos(0);
}

}  // namespace

Plan MakePlan(std::uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15ULL + 1);
  Plan plan;
  plan.seed = seed;
  const int mix = static_cast<int>(seed % kMixes);
  plan.mix = kNames[static_cast<std::size_t>(mix)];
  const auto kind = static_cast<Kind>(seed / kMixes % kKinds);
  plan.kind = kKindNames[kind];
  plan.nodes = Pick(random, std::array{1, 3, 3, 5});
  plan.workers = random.Between(2, 4);
  plan.partitions = random.Between(1, 4);
  plan.store_exists = random.Chance(700);
  plan.by_position = random.Chance(kind == kTransactions ? 400 : 250);
  plan.records = random.Between(20, 120);
  plan.ids = std::max(1, plan.records * random.Between(20, 100) / 100);
  plan.conflicts = random.Chance(200) ? 200 : 0;
  plan.holes = Pick(random, std::array{0, 100, 400});
  plan.produce_for = random.Time(Millis(0), seconds(10));
  plan.faults_end = random.Time(seconds(5), seconds(14));
  DrawTimes(plan, random);
  DrawFlow(plan, random);
  DrawKind(plan, random, kind);
  DrawTrouble(plan, random, mix);
  DrawWaits(plan, random);
  plan.flow.max_consecutive = Pick(random, std::array<std::size_t, 4>{1, 3, 10, 10});
  if (mix != 0 && plan.flow.dead_letters) plan.table_faults = Pick(random, std::array{0, 150, 400});
  // A draw of its own, so that all others of a seed stay what they are.
  Random unavailable(seed * 0x2545f4914f6cdd1dULL + 7);
  if (plan.flow.finality == consumer::Finality::kLedger && unavailable.Chance(300)) {
    plan.on_unavailable = consumer::OnUnavailable::kProceed;
  }
  // With a ledger most leave their leases behind; the others mark what is done.
  if (plan.flow.finality == consumer::Finality::kLedger && unavailable.Chance(750)) {
    plan.flow.remember_done = Millis(0);
  }
  if (plan.by_position && WriteDecides(plan.flow.finality, plan.flow.identity))
    plan.flow.block = Pick(unavailable, std::array{1, 2, 4, 8});
  Random contact(seed * 0x9e6c63d0876a9a47ULL + 3);
  plan.lock.contact = contact.Chance(300) ? locking::Contact::kAll : locking::Contact::kQuorum;
  return plan;
}

}  // namespace fencepost::simulator
