#include "tests/model/simulator/plan.h"

#include <array>

namespace fencepost::simulator {
namespace {

using std::chrono::seconds;

constexpr std::array<const char*, kMixes> kNames = {"calm",  "loss",  "pauses",        "crashes",
                                                    "wipes", "jumps", "all but jumps", "all"};

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
  if (!plan.by_position) plan.flow.record_id = {consumer::Selector::Kind::kHeader, "id", false};
  plan.flow.on_id_conflict = plan.by_position ? consumer::OnBad::kStop : consumer::OnBad::kSkip;
  plan.flow.max_in_flight = static_cast<std::size_t>(Pick(random, std::array{3, 10, 40, 1000}));
  plan.flow.lock_wait = Millis(Pick(random, std::array{100, 1000, 30'000}));
  plan.flow.remember_done = plan.lock.remember_done;
  plan.flow.commit_interval = Millis(Pick(random, std::array{20, 200, 1000}));
  plan.flow.write_batch = static_cast<std::size_t>(Pick(random, std::array{1, 5, 500}));
  plan.flow.writes_out = static_cast<std::size_t>(random.Between(1, 2));
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
  plan.nodes = Pick(random, std::array{1, 3, 3, 5});
  plan.workers = random.Between(2, 4);
  plan.partitions = random.Between(1, 4);
  plan.store_exists = random.Chance(700);
  plan.by_position = random.Chance(100);
  plan.records = random.Between(20, 120);
  plan.ids = std::max(1, plan.records * random.Between(20, 100) / 100);
  plan.conflicts = random.Chance(200) ? 200 : 0;
  plan.holes = Pick(random, std::array{0, 100, 400});
  plan.produce_for = random.Time(Millis(0), seconds(10));
  plan.faults_end = random.Time(seconds(5), seconds(14));
  DrawTimes(plan, random);
  DrawFlow(plan, random);
  DrawTrouble(plan, random, mix);
  return plan;
}

}  // namespace fencepost::simulator
