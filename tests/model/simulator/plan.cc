#include "tests/model/simulator/plan.h"

#include <algorithm>
#include <array>

namespace fencepost::simulator {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kLargeOneIn = 40;

// What the pipeline is: a ledger alone, a handler before it, DONE marks instead, Kafka
// transactions.
enum Kind : std::uint8_t { kPlain, kHandled, kMarks, kTransactions };
constexpr std::array<const char*, kKinds> kKindNames = {"plain", "handled", "marks",
                                                        "transactions"};

template <typename T, std::size_t N>
T Pick(Random& random, const std::array<T, N>& values) {
  return values[static_cast<std::size_t>(random.Below(static_cast<int>(N)))];
}

void DrawSmallWorld(Plan& plan, Random& random) {
  plan.nodes = Pick(random, std::array{1, 3, 3, 3, 3, 3, 3, 5});
  plan.workers = Pick(random, std::array{1, 2, 2, 2, 2, 3});
  plan.partitions = Pick(random, std::array{1, 1, 2, 3});
  plan.records = random.Chance(700) ? random.Between(3, 12) : random.Between(10, 40);
  plan.produce_for = random.Time(Millis(0), seconds(1));
  plan.faults_end = random.Time(Millis(400), seconds(2));
  plan.outage = Millis(600);
  plan.lock.ttl = Millis(Pick(random, std::array{300, 600, 1000}));
  plan.lock.max_skew = Millis(Pick(random, std::array{50, 100, 200}));
  plan.lock.node_timeout = Millis(Pick(random, std::array{20, 50, 100}));
  plan.delay = microseconds(Pick(random, std::array{100, 500, 3000}));
  plan.revoke_drain = Millis(Pick(random, std::array{100, 300, 1000}));
  plan.write_takes = Millis(Pick(random, std::array{2, 20, 100, 400}));
  plan.session = Millis(Pick(random, std::array{300, 800, 1500}));
  plan.restart_within = Millis(600);
  plan.handshake = Millis(200);
  plan.transaction_timeout = Millis(Pick(random, std::array{500, 1500}));
  plan.handler_takes = Millis(Pick(random, std::array{1, 20, 150}));
  plan.flow.handler_timeout = Millis(Pick(random, std::array{200, 600, 20'000}));
  plan.flow.max_in_flight = static_cast<std::size_t>(Pick(random, std::array{3, 10, 1000}));
  plan.flow.commit_interval = Millis(Pick(random, std::array{20, 100, 400}));
  plan.calls = Millis(Pick(random, std::array{0, 0, 0, 300}));
  plan.call_waits = Millis(400);
  plan.looks = seconds(2);
  plan.quiet = Millis(400);
  plan.found = Millis(700);
  plan.comes_to_its_end = seconds(150);
}

void DrawLargeWorld(Plan& plan, Random& random) {
  plan.size = Size::kLarge;
  plan.nodes = Pick(random, std::array{1, 3, 3, 5});
  plan.workers = random.Between(2, 4);
  plan.partitions = random.Between(1, 4);
  plan.records = random.Between(20, 120);
  plan.produce_for = random.Time(Millis(0), seconds(10));
  plan.faults_end = random.Time(seconds(5), seconds(14));
  plan.outage = Millis(2500);
  plan.lock.ttl = Millis(Pick(random, std::array{600, 1000, 2000, 5000}));
  plan.lock.max_skew = Millis(Pick(random, std::array{100, 500, 1000}));
  plan.lock.node_timeout = Millis(Pick(random, std::array{50, 100, 200}));
  plan.delay = microseconds(Pick(random, std::array{100, 500, 3000}));
  plan.revoke_drain = Millis(Pick(random, std::array{200, 1000, 5000}));
  plan.write_takes = Millis(Pick(random, std::array{2, 20, 200, 1500}));
  plan.session = Millis(Pick(random, std::array{1500, 4000}));
  plan.restart_within = seconds(3);
  plan.handshake = seconds(1);
  plan.transaction_timeout = Millis(Pick(random, std::array{800, 3000}));
  plan.handler_takes = Millis(Pick(random, std::array{1, 20, 300}));
  plan.flow.handler_timeout = Millis(Pick(random, std::array{500, 2000, 20'000}));
  plan.flow.max_in_flight = static_cast<std::size_t>(Pick(random, std::array{3, 10, 40, 1000}));
  plan.flow.commit_interval = Millis(Pick(random, std::array{20, 200, 1000}));
  plan.calls = Millis(Pick(random, std::array{0, 0, 0, 300, 300, 300, 300, 30}));
  plan.call_waits = plan.calls == Millis(30) ? seconds(1) : seconds(5);
  plan.looks = seconds(10);
  plan.quiet = seconds(3);
  plan.found = seconds(9);
  plan.comes_to_its_end = seconds(150);
}

// The times are those of the program's defaults.
void DrawLastingWorld(Plan& plan, Random& random) {
  plan.size = Size::kLasting;
  plan.nodes = Pick(random, std::array{3, 3, 5});
  plan.workers = random.Between(2, 3);
  plan.partitions = random.Between(1, 3);
  plan.records = random.Between(20, 120);
  plan.produce_for = random.Time(minutes(20), minutes(60));
  plan.faults_end = random.Time(minutes(20), minutes(60));
  plan.outage = seconds(90);
  plan.lock.ttl = seconds(10);
  plan.lock.max_skew = seconds(5);
  plan.lock.node_timeout = Millis(200);
  plan.delay = microseconds(Pick(random, std::array{100, 500, 3000}));
  plan.revoke_drain = seconds(10);
  plan.write_takes = Millis(Pick(random, std::array{2, 200, 5000}));
  plan.session = seconds(15);
  plan.restart_within = seconds(60);
  plan.handshake = seconds(1);
  plan.transaction_timeout = seconds(10);
  plan.handler_takes = Millis(Pick(random, std::array{20, 1000, 8000}));
  plan.flow.handler_timeout = seconds(30);
  plan.flow.max_in_flight = static_cast<std::size_t>(Pick(random, std::array{3, 1000}));
  plan.flow.commit_interval = seconds(1);
  plan.calls = random.Chance(500) ? Nanos(0) : seconds(20);
  plan.call_waits = seconds(5);
  plan.looks = minutes(2);
  plan.quiet = seconds(30);
  plan.found = seconds(60);
  plan.comes_to_its_end = minutes(30);
}

void DrawLock(Plan& plan, Random& random) {
  locking::LockOptions& lock = plan.lock;
  lock.min_validity = lock.ttl / 5;
  lock.max_ttl = lock.ttl * random.Between(1, 2);
  // A mark replaces whatever stands there, another's lease and the floor too, so it must outlast
  // both.
  const int longest = static_cast<int>((lock.max_ttl + 2 * lock.max_skew).count());
  lock.remember_done =
      Millis(Pick(random, std::array{longest, std::max(longest, 20'000), 300'000}));
  plan.clock_ppm = Pick(random, std::array{0, 100, 2000});
  lock.wake_up = random.Chance(450);
  lock.drift_factor = Pick(random, std::array{0.01, 0.1});
  lock.contact = random.Chance(300) ? locking::Contact::kAll : locking::Contact::kQuorum;
  lock.few_locks = random.Chance(500) ? 0 : 3;
}

void DrawFlow(Plan& plan, Random& random) {
  consumer::FlowOptions& flow = plan.flow;
  flow.pipeline = kPipeline;
  flow.order = Pick(random, std::array{consumer::Order::kPartition, consumer::Order::kKey,
                                       consumer::Order::kNone});
  if (!plan.by_position)
    flow.identity.record_id = {{consumer::Selector::Kind::kHeader, "id", false}};
  flow.on_id_conflict = plan.by_position ? consumer::OnBad::kStop : consumer::OnBad::kSkip;
  flow.lock_wait = Millis(Pick(random, std::array{100, 1000, 30'000}));
  flow.remember_done = plan.lock.remember_done;
  flow.write_batch = static_cast<std::size_t>(Pick(random, std::array{1, 5, 500}));
  flow.writes_out = static_cast<std::size_t>(random.Between(1, 2));
  flow.transaction_lasts = std::chrono::ceil<Millis>(plan.LongestWrite());
  flow.max_consecutive = Pick(random, std::array<std::size_t, 4>{1, 3, 10, 10});
}

void DrawHandler(Plan& plan, Random& random, Kind kind) {
  consumer::HandlerOptions& handler = plan.flow.handler;
  const int which = random.Below(3);
  if (kind == kHandled || which == 0) {
    handler.kind = consumer::CustomHandlerOptions{};
  } else if (which == 1) {
    handler.kind = consumer::JqHandlerOptions{"."};
  }
  const bool http = kind == kHandled && which == 1;
  if (http) handler.kind = consumer::HttpHandlerOptions{};
  plan.handler_refusals = Pick(random, std::array{0, 20, 100});
  plan.flow.tuning.concurrency = Pick(random, std::array{1, 3, 64});
  plan.flow.tuning.retry.attempts = Pick(random, std::array{1, 3, 8});
  plan.flow.tuning.retry.give_up_after = Millis(Pick(random, std::array{0, 0, 5000}));
  plan.flow.tuning.retry.initial = Millis(Pick(random, std::array{5, 50, 200}));
  plan.flow.tuning.retry.max = Millis(1000);
  if (!http) plan.flow.tuning.retry.never = {"4xx"};
}

void DrawKind(Plan& plan, Random& random, Kind kind) {
  consumer::FlowOptions& flow = plan.flow;
  if (kind == kPlain) plan.lock.quarantine = random.Chance(500);
  if (kind != kPlain) DrawHandler(plan, random, kind);
  if (kind == kMarks) flow.finality = consumer::Finality::kWrite;
  if (kind == kTransactions) {
    flow.finality = consumer::Finality::kTransaction;
    flow.order = consumer::Order::kPartition;
    flow.writes_out = 1;
    flow.linger = Millis(Pick(random, std::array{0, 20, 100}));
  }
  if (flow.finality == consumer::Finality::kLedger && random.Chance(300))
    plan.on_unavailable = consumer::OnUnavailable::kProceed;
  if (plan.by_position && WriteDecides(flow.finality, flow.identity))
    flow.block = Pick(random, std::array{1, 2, 4, 8});
  if (kind == kPlain && random.Chance(500)) return;
  flow.dead_letters = true;
  flow.on_bad_record = consumer::OnBad::kDeadLetter;
  if (random.Chance(500)) flow.on_id_conflict = consumer::OnBad::kDeadLetter;
  plan.without_id = Pick(random, std::array{0, 30, 100});
  plan.refused = Pick(random, std::array{0, 30, 100});
  flow.letters_apart = kind == kTransactions && plan.refused == 30;
}

// Where a group's offset has been set by hand, or begins above 0, nothing tells that its log is
// another one (log_samples.h).
bool MayReplace(const Plan& plan) {
  return plan.flow.finality == consumer::Finality::kLedger && !plan.Has(Fault::kFailovers) &&
         !plan.Has(Fault::kRetention) && !plan.Has(Fault::kReplays) && !plan.keep &&
         !plan.Replaces();
}

// Without what would mean nothing here.
bool Fits(const Plan& plan, Fault fault) {
  switch (fault) {
    case Fault::kWipes:
    case Fault::kUnfit:
    case Fault::kEvictions:
      return plan.nodes > 1 || !plan.lock.quarantine;
    case Fault::kReplaced:
      return plan.nodes > 1;
    case Fault::kOffsetsLost:  // which are all that such an output remembers
      return plan.flow.finality != consumer::Finality::kTransaction;
    case Fault::kFailovers:
    case Fault::kCutOff:
      return plan.flow.finality == consumer::Finality::kLedger;
    case Fault::kPruned:
      return plan.flow.finality == consumer::Finality::kLedger && !plan.by_position;
    case Fault::kContentRule:  // who stores no digest has none to compare
      return !plan.by_position && plan.flow.finality != consumer::Finality::kTransaction;
    case Fault::kReplays:
      return plan.flow.finality == consumer::Finality::kLedger && plan.flow.dead_letters;
    case Fault::kTopicRemade:
      return MayReplace(plan);
    case Fault::kTailLost:
      return MayReplace(plan) && !plan.by_position;
    case Fault::kTableRefuses:  // where nobody may call a record bad, the worker would end
      return plan.flow.dead_letters;
    default:
      return true;
  }
}

void DrawTrouble(Plan& plan, Random& random) {
  const int share = Pick(random, std::array{0, 80, 80, 200, 200, 400, 600});
  for (std::size_t i = 0; i < kFaults; ++i) {
    const auto fault = static_cast<Fault>(i);
    if (!random.Chance(share) || !Fits(plan, fault)) continue;
    plan.faults.set(i);
    KindOf(fault).on(plan, random);
  }
}

}  // namespace

Plan MakePlan(std::uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15ULL + 1);
  Plan plan;
  plan.seed = seed;
  const auto kind = static_cast<Kind>((seed + seed / kLargeOneIn) % kKinds);
  plan.kind = kKindNames[kind];
  if (seed >= kFirstLasting) {
    DrawLastingWorld(plan, random);
  } else if (seed % kLargeOneIn == 0) {
    DrawLargeWorld(plan, random);
  } else {
    DrawSmallWorld(plan, random);
  }
  plan.ids = std::max(1, plan.records * random.Between(20, 100) / 100);
  plan.store_exists = random.Chance(plan.size == Size::kSmall ? 900 : 700);
  plan.static_members = random.Chance(250);
  plan.by_position = random.Chance(kind == kTransactions ? 400 : 250);
  plan.conflicts = random.Chance(200) ? 200 : 0;
  plan.holes = Pick(random, std::array{0, 100, 400});
  plan.filters = plan.seed / kKinds % 4 == 3;
  DrawLock(plan, random);
  DrawFlow(plan, random);
  DrawKind(plan, random, kind);
  DrawTrouble(plan, random);
  if (plan.flow.handler.any()) plan.filtered = Pick(random, std::array{0, 100, 500});
  return plan;
}

}  // namespace fencepost::simulator
