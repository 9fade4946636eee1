#include "tests/model/heal/small_world.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "locking/core/store/heal.h"
#include "locking/core/store/sentinel.h"
#include "tests/support/node_model.h"

namespace fencepost::heal_model {
namespace {

using locking::Healing;
using locking::HealWrite;
using locking::Millis;
using locking::NodeModel;
using locking::NodeSight;
using locking::Nonce;
using locking::Op;
using locking::OpKind;
using locking::ReplyCode;
using locking::Sentinel;
using locking::Token;
using locking::UnitValue;
using locking::WallTime;
using Kind = Healing::Step::Kind;

constexpr Millis kTick{1000};  // max_skew, too
constexpr int kTtl = 6;        // ticks; the store's max_ttl as well
constexpr int kWipedAt = 0;
// The moments that differ: the first client asks, and the wipe; healing may read; the first
// client's lease is over.
constexpr int kReadable = 4;
constexpr std::array kMoments{0, kReadable, kTtl};
constexpr WallTime kStart{Millis(1'800'000'000'000)};
const std::string kName = "fencepost:{small}:x";

struct Client {
  int drawn = -1;        // when its token was
  unsigned asking = 0;   // nodes that the acquire has not reached
  unsigned granted = 0;  // counted
  unsigned freeing = 0;
  bool gave_up = false;
  int until = -1;  // of its lease
  int extended_at = -1;
  unsigned extending = 0;
  unsigned extended = 0;
};

struct State {
  int now = 0;
  bool wiped = false;
  std::vector<NodeModel> nodes;
  std::array<Client, 2> clients;
  std::shared_ptr<const Healing> healing;  // null: not begun, or over
  bool healed = false;
  int looks = 0;  // tells the first from the last
  std::vector<std::optional<NodeSight>> sights;
  std::uint64_t leased = 0;  // the highest token
  std::string broken;
};

class World {
 public:
  World(const Rules& rules, std::size_t most) : rules_(rules), search_(most) {
    options_.max_skew = kTick;
  }

  Found Run() {
    Visit(Beginning());
    static_cast<model::Searched&>(found_) =
        search_.Run([this](const State& state) { Expand(state); });
    return found_;
  }

 private:
  [[nodiscard]] int last() const { return rules_.nodes - 1; }  // the node that is wiped
  [[nodiscard]] static WallTime Wall(int tick) { return kStart + tick * kTick; }
  [[nodiscard]] unsigned All() const { return (1U << static_cast<unsigned>(rules_.nodes)) - 1; }
  [[nodiscard]] static Token TokenOf(const State& state, int client) {
    return Token(
        Token::AtWall(Wall(state.clients[static_cast<std::size_t>(client)].drawn)).value() +
        (client == 0 ? 2 : 1));  // of one tick, the rival's is the lower
  }

  State Beginning() {
    State state;
    state.sights.resize(static_cast<std::size_t>(last()));
    for (int i = 0; i < rules_.nodes; ++i) {
      state.nodes.emplace_back(fmt::format("{:040}", i));
      state.nodes.back().ApplySentinelWrite({std::nullopt, Text(i), std::nullopt}, kStart);
    }
    return state;
  }
  static std::string Text(int index, int nodes) {
    Sentinel sentinel;
    sentinel.complete = true;
    sentinel.store_id = std::string(locking::kStoreIdSize, 'a');
    sentinel.index = index;
    sentinel.nodes = nodes;
    sentinel.run_id = fmt::format("{:040}", index);
    sentinel.max_ttl = kTtl * kTick;
    return sentinel.Encode();
  }
  [[nodiscard]] std::string Text(int index) const { return Text(index, rules_.nodes); }

  // --- what can happen next --------------------------------------------------------------------
  void Expand(const State& state) {
    const auto* const later = std::upper_bound(kMoments.begin(), kMoments.end(), state.now);
    if (later != kMoments.end() && (state.wiped || *later <= kWipedAt)) {
      State next = state;
      next.now = *later;
      Visit(std::move(next));
    }
    if (!state.wiped && state.now == kWipedAt) Wipe(state);
    for (int client = 0; client < 2; ++client) ExpandClient(state, client);
    if (state.wiped && !state.healed) ExpandHealing(state);
  }

  void Wipe(State next) {
    NodeModel& node = next.nodes[static_cast<std::size_t>(last())];
    node.Wipe();
    node.ApplySentinelWrite({std::nullopt, Text(last()), kTtl * kTick + 2 * kTick}, Wall(next.now));
    next.wiped = true;
    Visit(std::move(next));
  }

  void ExpandClient(const State& state, int index) {
    const Client& client = state.clients[static_cast<std::size_t>(index)];
    if (client.drawn < 0) {
      if (state.now != (index == 0 ? 0 : rules_.rival_at)) return;
      State next = state;
      next.clients[static_cast<std::size_t>(index)].drawn = state.now;
      next.clients[static_cast<std::size_t>(index)].asking = All();
      return Visit(std::move(next));
    }
    if (!client.gave_up && (client.asking == 0 || client.until >= 0)) {
      State next = state;
      Client& ending = next.clients[static_cast<std::size_t>(index)];
      ending.gave_up = true;
      ending.freeing = All();
      ending.until = -1;
      // Where the acquire has arrived the abort is there at once; a later one is as an end later.
      for (int node = 0; node < rules_.nodes; ++node) {
        if (((client.asking >> static_cast<unsigned>(node)) & 1U) == 0) Freed(next, index, node);
      }
      Visit(std::move(next));
    }
    const bool held = client.until > state.now && !client.gave_up;
    if (held && index == 0 && rules_.extends && client.extended_at < 0) {
      State next = state;
      next.clients[0].extended_at = state.now;
      next.clients[0].extending = All();
      Visit(std::move(next));
    }
    for (int node = 0; node < rules_.nodes; ++node) {
      const unsigned bit = 1U << static_cast<unsigned>(node);
      if ((client.asking & bit) != 0) {
        Ask(state, index, node);
      } else if ((client.extending & bit) != 0) {
        Extend(state, index, node);
      } else if ((client.freeing & bit) != 0) {
        Free(state, index, node);
      }
    }
  }

  locking::Reply Apply(State& state, OpKind kind, int client, int node) const {
    const auto half = static_cast<std::uint64_t>(client) + 1;
    const Op op{.kind = kind,
                .lock = {},
                .name = kName,
                .token = TokenOf(state, client),
                .nonce = Nonce{{half, half}},
                .ttl = kTtl * kTick};
    locking::CallHeader header;
    return state.nodes[static_cast<std::size_t>(node)]
        .Apply(kind, std::span(&op, 1), options_, Wall(state.now), &header)
        .front();
  }

  void Ask(State next, int index, int node) {
    Client& client = next.clients[static_cast<std::size_t>(index)];
    const unsigned bit = 1U << static_cast<unsigned>(node);
    client.asking &= ~bit;
    const auto reply = Apply(next, OpKind::kAcquire, index, node);
    const bool granted =
        reply.code == ReplyCode::kGranted || reply.code == ReplyCode::kGrantedTakeover;
    if (granted && !reply.quarantined && !client.gave_up && client.until < 0 &&
        next.now < client.drawn + kTtl) {
      client.granted |= bit;
      if (std::popcount(client.granted) >= locking::Quorum(rules_.nodes)) Lease(next, index);
    }
    Visit(std::move(next));
  }

  static void Lease(State& state, int index) {
    Client& client = state.clients[static_cast<std::size_t>(index)];
    client.until = client.drawn + kTtl;
    const std::uint64_t token = TokenOf(state, index).value();
    if (token < state.leased) state.broken = "a lease has a token below that of an earlier one";
    state.leased = token;
    Alone(state);
  }
  static void Alone(State& state) {
    const auto holds = [&](const Client& one) { return one.until > state.now; };
    if (holds(state.clients[0]) && holds(state.clients[1])) state.broken = "two hold the name";
  }

  void Extend(State next, int index, int node) {
    Client& client = next.clients[static_cast<std::size_t>(index)];
    const unsigned bit = 1U << static_cast<unsigned>(node);
    client.extending &= ~bit;
    const auto reply = Apply(next, OpKind::kExtend, index, node);
    if (reply.code == ReplyCode::kExtended && !reply.quarantined && !client.gave_up &&
        client.until > next.now) {
      client.extended |= bit;
      if (std::popcount(client.extended) >= locking::Quorum(rules_.nodes)) {
        client.until = client.extended_at + kTtl;
        Alone(next);
      }
    }
    Visit(std::move(next));
  }

  void Free(State next, int index, int node) {
    Freed(next, index, node);
    Visit(std::move(next));
  }
  void Freed(State& state, int index, int node) const {
    state.clients[static_cast<std::size_t>(index)].freeing &= ~(1U << static_cast<unsigned>(node));
    Apply(state, OpKind::kAbort, index, node);
  }

  // --- healing ---------------------------------------------------------------------------------
  void ExpandHealing(const State& state) {
    const NodeModel& node = state.nodes[static_cast<std::size_t>(last())];
    if (!node.Quarantined(Wall(state.now))) return;
    if (state.healing == nullptr) {
      if (state.now < kReadable && !rules_.reads_at_once) return;  // it would wait
      State next = state;
      std::vector<std::string> run_ids;
      for (const NodeModel& one : state.nodes) run_ids.push_back(one.run_id());
      const Millis skew = rules_.reads_at_once ? -5 * kTick : kTick;
      next.healing = std::make_shared<Healing>(last(), run_ids, skew);
      return Visit(std::move(next));
    }
    const Healing::Step& step = state.healing->Next();
    if (step.kind == Kind::kLook && step.nodes.front() == last()) return LookAtHealed(state);
    if (step.kind == Kind::kLook && step.names.empty()) return LookAtOthers(state);
    if (step.kind == Kind::kLook) {
      for (std::size_t i = 0; i + 1 < state.nodes.size(); ++i) {
        if (!state.sights[i]) LookAt(state, i);
      }
      return;
    }
    State next = state;
    auto healing = std::make_shared<Healing>(*state.healing);
    NodeModel& healed = next.nodes[static_cast<std::size_t>(last())];
    if (step.kind == Kind::kWait) {
      healing->OnWaited();
    } else if (step.kind == Kind::kWrite) {
      const auto written = healed.Heal(step.sentinel, Spoiled(step.writes), Wall(state.now));
      if (!written) return;
      healing->OnWritten(*written);
      ScanOn(state, *healing);
    } else if (step.kind == Kind::kLift) {
      healing->OnLifted(healed.ApplySentinelWrite(step.lift, Wall(state.now)));
    }
    if (healing->Next().kind == Kind::kFinished) {
      ++found_.healed;
      found_.kept_for_anyone += healing->counts().kept_for_anyone;
      next.healed = true;
      healing = nullptr;
    } else if (healing->Next().kind == Kind::kFailed) {
      return;  // the quarantine takes its time
    }
    next.healing = std::move(healing);
    Visit(std::move(next));
  }

  void LookAtOthers(State next) {
    for (std::size_t node = 0; node + 2 < next.nodes.size(); ++node) {
      next.sights[node] = next.nodes[node].Sight({}, Wall(next.now));
    }
    LookAt(std::move(next), next.nodes.size() - 2);
  }

  // One of the others. The sights stay in the state until the healed node was looked at, too:
  // what Healing keeps of them is a part of it.
  void LookAt(State next, std::size_t node) {
    next.sights[node] = next.nodes[node].Sight(next.healing->Next().names, Wall(next.now));
    if (std::all_of(next.sights.begin(), next.sights.end(),
                    [](const auto& sight) { return sight.has_value(); })) {
      auto healing = std::make_shared<Healing>(*next.healing);
      std::vector<NodeSight> sights;
      for (const auto& sight : next.sights) sights.push_back(*sight);
      healing->OnLook(std::move(sights));
      next.healing = std::move(healing);
    }
    Visit(std::move(next));
  }

  // Later than the others, whatever happened in between.
  void LookAtHealed(State next) {
    auto healing = std::make_shared<Healing>(*next.healing);
    healing->OnLook({*next.nodes.back().Sight(healing->Next().names, Wall(next.now))});
    for (auto& sight : next.sights) sight.reset();
    ++next.looks;
    ScanOn(next, *healing);
    if (healing->Next().kind == Kind::kFailed) return;
    next.healing = std::move(healing);
    Visit(std::move(next));
  }

  void ScanOn(const State& state, Healing& healing) const {
    while (healing.Next().kind == Kind::kScan) healing.OnScan(Page(state, healing.Next()));
  }
  locking::HealPage Page(const State& state, const Healing::Step& step) const {
    locking::HealPage page{"0", {}};
    const NodeModel& node = state.nodes[static_cast<std::size_t>(step.node)];
    const bool there = node.Look(kName, Wall(state.now)).state != NodeModel::State::kAbsent;
    if (there && !rules_.lifts_first) page.names.push_back(kName);
    return page;
  }

  [[nodiscard]] std::vector<HealWrite> Spoiled(std::vector<HealWrite> writes) const {
    for (HealWrite& write : writes) {
      auto value = *UnitValue::Decode(write.value);
      if (value.state != UnitValue::State::kHeld) continue;
      if (rules_.gives_no_leases) value.state = UnitValue::State::kFree;
      write.value = value.Encode();
    }
    return writes;
  }

  // --- states ----------------------------------------------------------------------------------
  void Visit(State state) {
    if (!state.broken.empty()) {
      return search_.Break(fmt::format("{} at tick {}: {}", state.broken, state.now, Print(state)));
    }
    std::string print = Print(state);
    search_.Visit(std::move(state), std::move(print));
  }

  [[nodiscard]] static std::string Print(const State& state) {
    std::string text = fmt::format("{}{}{} {}", state.now, state.wiped, state.healed, state.looks);
    for (const NodeModel& node : state.nodes) {
      const auto unit = node.Look(kName, Wall(state.now));
      text += '|';
      text += NodeModel::Encode(unit);
      if (unit.state != NodeModel::State::kAbsent) {
        text += fmt::format("x{}", (unit.expires - kStart).count());
      }
    }
    for (const Client& one : state.clients) {
      text += fmt::format("|{} {} {} {} {} {} {} {} {}", one.drawn, one.asking, one.granted,
                          one.freeing, one.gave_up, one.until, one.extended_at, one.extending,
                          one.extended);
    }
    if (state.nodes.back().sentinel())
      text += state.nodes.back().sentinel()->substr(locking::kSentinelQuarantineAt, 13);
    if (state.healing == nullptr) return text;
    const Healing::Step& step = state.healing->Next();
    text += fmt::format("|h{} {} {} {} {} {}", static_cast<int>(step.kind), step.node,
                        step.names.size(), step.nodes.size(), state.healing->counts().seen,
                        state.healing->counts().written);
    for (const HealWrite& write : step.writes) {
      text += fmt::format(" {}>{} {}", write.expected, write.value, write.left.count());
    }
    for (const auto& sight : state.sights) {
      text += '/';
      if (!sight) continue;
      text += fmt::format("{}", sight->time.time_since_epoch().count());
      for (const auto& value : sight->values)
        text += fmt::format("{} {}", value.raw, value.left.count());
    }
    return text;
  }

  const Rules rules_;
  locking::LockOptions options_;
  model::Search<State> search_;
  Found found_;
};

}  // namespace

Found Search(const Rules& rules, std::size_t most_states) {
  return World(rules, most_states).Run();
}

}  // namespace fencepost::heal_model
