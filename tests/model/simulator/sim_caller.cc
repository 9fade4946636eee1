#include "tests/model/simulator/sim_caller.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using locking::LockEvent;

constexpr int kNames = 3;
constexpr std::uint64_t kFirstCookie = 1ULL << 62;

template <std::size_t N>
Millis PickMillis(Random& random, const std::array<int, N>& values) {
  return Millis(values[static_cast<std::size_t>(random.Below(static_cast<int>(N)))]);
}

}  // namespace

SimCaller::SimCaller(World& world, SimWorker& worker)
    : world_(world), worker_(worker), process_(worker.process()), last_(kFirstCookie) {}

void SimCaller::Start() {
  if (world_.plan.calls.count() > 0) Ask();
}

void SimCaller::Ask() {
  if (!world_.FaultsOn()) return;
  Random& random = world_.random;
  const std::string name = fmt::format("fencepost:{{{}}}:call-{}", kPipeline, random.Below(kNames));
  locking::AcquireSpec spec;
  spec.name = name;
  spec.cookie = ++last_;
  const bool large = world_.plan.size != Size::kSmall;
  spec.wait = std::min<Millis>(PickMillis(random, std::array{0, 50, 2000, 10'000}),
                               std::chrono::floor<Millis>(world_.plan.call_waits));
  spec.watchdog = random.Chance(500);
  spec.tries = random.Below(4);
  spec.delay.first = PickMillis(random, std::array{0, large ? 2 : 20, 50, 1000});
  spec.delay.most = PickMillis(random, std::array{20, 1000, 5000});
  spec.delay.multiplier = random.Chance(500) ? 1.0 : 3.0;
  spec.delay.jitter = random.Chance(700);
  spec.min_validity = random.Chance(500) ? Millis(-1) : world_.plan.lock.ttl / random.Between(2, 9);
  const std::uint64_t cookie = spec.cookie;
  locks_[cookie] = {};
  locks_[cookie] = worker_.locks().Acquire(spec, process_.now());
  worker_.HandedIn();
  if (random.Chance(400)) {
    const Nanos longest = random.Chance(500) ? world_.plan.delay * 8 : Nanos(Millis(3000));
    process_.Later(Process::kTimer, random.Time(Nanos(0), longest), [this, cookie] {
      const auto found = locks_.find(cookie);
      if (found == locks_.end()) return;
      worker_.locks().Cancel(found->second, process_.now());
      world_.Count("calls cancelled");
      locks_.erase(found);
      worker_.HandedIn();
    });
  }
  process_.Later(Process::kTimer, random.Time(Nanos(0), world_.plan.calls * 2), [this] { Ask(); });
}

void SimCaller::OnLockEvent(const LockEvent& event) {
  if (event.cookie < kFirstCookie || !locks_.contains(event.cookie)) return;
  switch (event.kind) {
    case LockEvent::Kind::kLeased:
      world_.Count("calls leased");
      process_.Later(Process::kTimer, world_.random.Time(Nanos(0), Millis(800)),
                     [this, cookie = event.cookie] { HoldOrRelease(cookie); });
      return;
    case LockEvent::Kind::kGaveUp:
      world_.Count("calls given up");
      break;
    case LockEvent::Kind::kRoundFailed:
      return;
    default:
      break;
  }
  locks_.erase(event.cookie);
}

void SimCaller::HoldOrRelease(std::uint64_t cookie) {
  const auto found = locks_.find(cookie);
  if (found == locks_.end()) return;
  if (world_.random.Chance(400)) {
    worker_.locks().ExtendNow(found->second, process_.now());
    process_.Later(Process::kTimer, world_.random.Time(Nanos(0), Millis(800)),
                   [this, cookie] { HoldOrRelease(cookie); });
  } else {
    worker_.locks().Release(found->second, process_.now());
  }
  worker_.HandedIn();
}

}  // namespace fencepost::simulator
