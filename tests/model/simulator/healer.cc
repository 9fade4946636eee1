#include "tests/model/simulator/healer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using std::chrono::seconds;
using Kind = locking::Healing::Step::Kind;

}  // namespace

Healer::Healer(World& world) : world_(world), random_(world.plan.seed * 7919 + 17) {}

void Healer::Begin() {
  if (world_.plan.nodes > 1 && random_.Chance(700)) LookAround();
}

SimNode& Healer::NodeAt(int node) const { return world_.NodeAt(first_ + node); }

Nanos Healer::Delay() {
  if (random_.Chance(20)) return random_.Time(Millis(100), seconds(2));
  return random_.Time(microseconds(50), Millis(4));
}

void Healer::LookAround() {
  world_.time.In(random_.Time(Millis(50), seconds(1)), [this] {
    if (const auto patient = Patient(); patient && healing_ == nullptr) Start(*patient);
    LookAround();
  });
}

std::optional<int> Healer::Patient() const {
  std::optional<int> patient;
  for (int i = 0; i < world_.plan.NodesInAll(); ++i) {
    const SimNode& node = world_.NodeAt(i);
    if (node.model.Quarantined(node.Wall(world_.time.now()))) patient = i;
  }
  return patient;
}

bool Healer::Reaches(int node) const {
  const SimNode& there = NodeAt(node);
  return there.up && !there.frozen &&
         there.incarnation == incarnations_[static_cast<std::size_t>(node)];
}

void Healer::Start(int patient) {
  std::vector<std::string> run_ids;
  incarnations_.clear();
  first_ = world_.plan.GroupOfPlace(patient) * world_.plan.nodes;
  for (int i = 0; i < world_.plan.nodes; ++i) {
    run_ids.push_back(NodeAt(i).model.run_id());
    incarnations_.push_back(NodeAt(i).incarnation);
  }
  healing_ =
      std::make_unique<locking::Healing>(patient - first_, run_ids, world_.plan.lock.max_skew);
  world_.Note("healing of node {} begins", patient);
  Go();
}

void Healer::Go() {
  world_.time.In(Delay(), [this] { Act(); });
}

void Healer::Act() {
  const locking::Healing::Step& step = healing_->Next();
  if (step.kind == Kind::kFinished) return Finish();
  if (step.kind == Kind::kFailed) {
    world_.Note("healing failed: {}", step.error.Line());
    world_.Count("heals refused or broken off");
    healing_.reset();
    return;
  }
  if (step.kind == Kind::kWait) {
    world_.time.In(step.wait, [this] {
      healing_->OnWaited();
      Go();
    });
    return;
  }
  if (step.kind == Kind::kLook) {
    order_.resize(step.nodes.size());
    std::iota(order_.begin(), order_.end(), 0);
    sights_.assign(order_.size(), {});
    for (std::size_t i = order_.size(); i > 1; --i) {
      std::swap(order_[i - 1],
                order_[static_cast<std::size_t>(random_.Below(static_cast<int>(i)))]);
    }
    return LookAt(0);
  }
  if (!Reaches(step.node)) return Fail("away");
  SimNode& node = NodeAt(step.node);
  const locking::WallTime wall = node.Wall(world_.time.now());
  if (step.kind == Kind::kScan) {
    healing_->OnScan(Page(step));
  } else if (step.kind == Kind::kWrite) {
    const auto written = node.model.Heal(step.sentinel, step.writes, wall);
    if (!written) return Fail("not in that quarantine");
    node.copied_to = true;
    healing_->OnWritten(*written);
  } else {
    healing_->OnLifted(node.model.ApplySentinelWrite(step.lift, wall));
  }
  Go();
}

// Each node at a moment of its own.
void Healer::LookAt(std::size_t place) {
  if (place == order_.size()) {
    healing_->OnLook(sights_);
    return Go();
  }
  const int index = healing_->Next().nodes[order_[place]];
  const SimNode& node = NodeAt(index);
  const auto sight = Reaches(index)
                         ? node.model.Sight(healing_->Next().names, node.Wall(world_.time.now()))
                         : std::nullopt;
  if (!sight) return Fail("away, or wiped");
  sights_[order_[place]] = *sight;
  world_.time.In(Delay(), [this, place] { LookAt(place + 1); });
}

// What comes in behind the cursor meanwhile is not seen, as with SCAN.
locking::HealPage Healer::Page(const locking::Healing::Step& step) {
  const SimNode& node = NodeAt(step.node);
  std::vector<std::string> names;
  node.model.ForEach(node.Wall(world_.time.now()), [&](std::string_view name, const auto&) {
    if (step.cursor == "0" || name > step.cursor) names.emplace_back(name);
  });
  std::sort(names.begin(), names.end());
  locking::HealPage page{"0", {}};
  if (names.size() > 3) {
    names.resize(3);
    page.cursor = names.back();
  }
  page.names = std::move(names);
  return page;
}

void Healer::Fail(const std::string& why) {
  healing_->OnFailed({"away", why, "", ""});
  Go();
}

void Healer::Finish() {
  SimNode& node = NodeAt(healing_->healed());
  world_.Note("node {} is healed", node.index);
  node.healed = true;
  const auto& counts = healing_->counts();
  world_.Count("nodes healed");
  world_.Count("leases given back by healing", static_cast<int>(counts.held));
  world_.Count("names kept for anyone by healing", static_cast<int>(counts.kept_for_anyone));
  world_.Count("marks given back by healing", static_cast<int>(counts.done));
  world_.Count("floors given back by healing", static_cast<int>(counts.floors));
  healing_.reset();
}

}  // namespace fencepost::simulator
