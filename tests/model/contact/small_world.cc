#include "tests/model/contact/small_world.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "locking/core/lock/rounds.h"
#include "tests/support/node_model.h"
#include "tests/support/sentinel_node.h"

namespace fencepost::contact_model {
namespace {

using namespace locking;  // NOLINT(google-build-using-namespace): its words are this world's

constexpr int kNodes = 3;
constexpr Millis kTick{1000};  // max_skew, too
constexpr int kTtl = 6;        // ticks; the store's max_ttl as well
// The moments that differ: the first asks; its token is at the edge of what nodes take, and it
// extends; its lease is over, by itself and as extended.
constexpr int kExtendAt = 1;
constexpr std::array kMoments{0, kExtendAt, kTtl, kTtl + kExtendAt};
constexpr WallTime kStart{Millis(1'800'000'000'000)};
const std::string kName = "fencepost:{small}:x";

struct Client {
  enum class Phase : std::uint8_t { kIdle, kAsking, kHeld, kOver } phase = Phase::kIdle;
  int drawn = -1;  // the tick of its token
  int late_at = -1;
  AcquireRound round;
  ExtendRound extension;
  int until = -1;  // of its lease
  int extended_at = -1;
  NodeSet may_hold = 0;
  NodeSet late = 0;
  NodeSet granted = 0;
  NodeSet freeing = 0;                              // once nothing else is under way there
  std::array<std::optional<OpKind>, kNodes> asked;  // under way; heard of as soon as it arrives
  std::array<std::string, kNodes> heard;            // what the rounds were told
};

struct State {
  int now = 0;
  int wiped = -1;
  std::vector<NodeModel> nodes;
  std::array<Client, 2> clients;
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
  using Phase = Client::Phase;

  [[nodiscard]] static WallTime Wall(int tick) { return kStart + tick * kTick; }
  [[nodiscard]] static std::string Sentinels(int index) {
    return CompleteSentinel(fmt::format("{:040}", index), index, kNodes, kTtl * kTick).Encode();
  }
  // Of one tick, the rival's is the lower.
  [[nodiscard]] static Token TokenOf(const State& state, std::size_t client) {
    return Token(Token::AtWall(Wall(state.clients[client].drawn)).value() + (client == 0 ? 2 : 1));
  }

  static State Beginning() {
    State state;
    for (int i = 0; i < kNodes; ++i) {
      state.nodes.emplace_back(fmt::format("{:040}", i));
      state.nodes.back().ApplySentinelWrite({std::nullopt, Sentinels(i), std::nullopt}, kStart);
    }
    return state;
  }

  // --- what can happen next --------------------------------------------------------------------
  void Expand(const State& state) {
    const auto* const later = std::upper_bound(kMoments.begin(), kMoments.end(), state.now);
    if (later != kMoments.end()) {
      State next = state;
      next.now = *later;
      Visit(std::move(next));
    }
    for (int node = 0; rules_.wipes && state.wiped < 0 && node < kNodes; ++node) Wipe(state, node);
    for (std::size_t client = 0; client < 2; ++client) ExpandClient(state, client);
  }

  void Wipe(State next, int node) {
    NodeModel& wiped = next.nodes[static_cast<std::size_t>(node)];
    wiped.Wipe();
    wiped.ApplySentinelWrite({std::nullopt, Sentinels(node), kTtl * kTick + 2 * kTick},
                             Wall(next.now));
    next.wiped = node;
    Visit(std::move(next));
  }

  void ExpandClient(const State& state, std::size_t index) {
    const Client& client = state.clients[index];
    if (client.phase == Phase::kIdle && state.now == (index == 0 ? 0 : rules_.rival_at)) {
      // The nodes are alike: the first client leaves out any one for all.
      for (NodeIndex left = 0; left < (index == 0 ? 1 : kNodes); ++left) Begin(state, index, left);
    }
    if (client.phase == Phase::kAsking && client.round.rest() != 0) {
      State next = state;
      AskTheRest(next, next.clients[index]);
      Visit(std::move(next));
    }
    if (client.phase == Phase::kHeld && client.until > state.now) {
      State next = state;
      GiveBack(next.clients[index]);
      Visit(std::move(next));
      if (index == 0 && rules_.extends && client.extended_at < 0 && state.now == kExtendAt) {
        Extend(state);
      }
    }
    for (NodeIndex node = 0; node < kNodes; ++node) {
      if (client.asked[static_cast<std::size_t>(node)]) {
        Arrive(state, index, node);
      } else if ((client.freeing & Bit(node)) != 0) {
        State next = state;
        next.clients[index].freeing = Without(client.freeing, Bit(node));
        Apply(next, OpKind::kAbort, index, node);
        Visit(std::move(next));
      }
    }
  }

  static void Send(Client& client, NodeSet nodes, OpKind kind) {
    for (NodeIndex node = 0; node < kNodes; ++node) {
      if ((nodes & Bit(node)) == 0) continue;
      client.asked[static_cast<std::size_t>(node)] = kind;
      if (Creates(kind)) client.may_hold |= Bit(node);
    }
  }

  void Begin(State next, std::size_t index, NodeIndex left) {
    Client& client = next.clients[index];
    client.phase = Phase::kAsking;
    client.drawn = next.now;
    const NodeSet first = Without(AllNodes(kNodes), Bit(left));
    client.round = AcquireRound(kNodes, AllNodes(kNodes), first, TokenOf(next, index));
    Send(client, first, OpKind::kAcquire);
    Visit(std::move(next));
  }

  static void AskTheRest(const State& state, Client& client) {
    client.late = client.round.AskTheRest();
    client.late_at = state.now;
    Send(client, client.late, OpKind::kAcquire);
  }

  // Ends an attempt or a lease.
  void GiveBack(Client& client) const {
    client.phase = Phase::kOver;
    client.until = -1;
    client.freeing = client.may_hold;
    if (rules_.abort_forgets_late) client.freeing = Without(client.freeing, client.late);
  }

  void Extend(State next) {
    Client& client = next.clients[0];
    if (client.asked != decltype(client.asked){}) return;
    client.extended_at = next.now;
    client.extension = ExtendRound(kNodes, client.granted);
    const NodeSet held = client.extension.Begin(AllNodes(kNodes));
    Send(client, held, OpKind::kExtend);
    Send(client, Without(AllNodes(kNodes), held), OpKind::kFill);
    Visit(std::move(next));
  }

  Reply Apply(State& state, OpKind kind, std::size_t index, NodeIndex node) const {
    const Op op{.kind = kind,
                .lock = {},
                .name = kName,
                .token = TokenOf(state, index),
                .nonce = Nonce{{index + 1, index + 1}},
                .ttl = kTtl * kTick};
    CallHeader header;
    return state.nodes[static_cast<std::size_t>(node)]
        .Apply(op.kind, std::span(&op, 1), options_, Wall(state.now), &header)
        .front();
  }

  void Arrive(State next, std::size_t index, NodeIndex node) {
    Client& client = next.clients[index];
    const auto at = static_cast<std::size_t>(node);
    const OpKind kind = *std::exchange(client.asked[at], std::nullopt);
    const Reply reply = Apply(next, kind, index, node);
    const bool granted =
        reply.code == ReplyCode::kGranted || reply.code == ReplyCode::kGrantedTakeover;
    const bool holds = granted || reply.code == ReplyCode::kFilled;
    if (!holds && Creates(reply.kind)) {
      client.may_hold = Without(client.may_hold, Bit(node));
      client.freeing = Without(client.freeing, Bit(node));
    }
    if (granted) client.granted |= Bit(node);
    client.heard[at] +=
        fmt::format("{}{}{}{},", static_cast<int>(reply.kind), static_cast<int>(reply.code),
                    reply.quarantined, reply.token.value() & 3U);
    if (client.phase == Phase::kAsking && reply.kind == OpKind::kAcquire) {
      HearAcquire(next, index, node, reply);
    } else if (client.phase == Phase::kHeld && client.until > next.now) {
      HearInLease(next, client, node, reply);
    }
    Visit(std::move(next));
  }

  void HearAcquire(State& state, std::size_t index, NodeIndex node, const Reply& reply) {
    Client& client = state.clients[index];
    Verdict verdict = client.round.OnReply(node, reply);
    const int granted = Count(client.granted);
    const bool wrongly = (rules_.late_counts_twice && client.late != 0 && granted >= 1) ||
                         (rules_.one_is_enough && granted >= 1);
    if (wrongly) verdict = Verdict::kWon;
    if (verdict == Verdict::kPending) {
      if (client.round.NeedsTheRest()) AskTheRest(state, client);
    } else if (verdict == Verdict::kWon) {
      Lease(state, index);
    } else {
      GiveBack(client);
    }
  }

  void Lease(State& state, std::size_t index) {
    Client& client = state.clients[index];
    const bool late = rules_.late_counts_from_its_sending && client.late != 0;
    client.until = (late ? client.late_at : client.drawn) + kTtl;
    if (client.until <= state.now) return GiveBack(client);
    client.phase = Phase::kHeld;
    ++found_.leases;
    found_.late += (client.granted & client.late) != 0 ? 1 : 0;
    const std::uint64_t token = TokenOf(state, index).value();
    if (token < state.leased) state.broken = "a lease has a token below that of an earlier one";
    state.leased = token;
    Alone(state);
  }

  static void Alone(State& state) {
    const auto holds = [&](const Client& one) {
      return one.phase == Phase::kHeld && one.until > state.now;
    };
    if (holds(state.clients[0]) && holds(state.clients[1])) state.broken = "two hold the name";
  }

  void HearInLease(State& state, Client& client, NodeIndex node, const Reply& reply) {
    if (reply.kind == OpKind::kAcquire) return;
    if (reply.code == ReplyCode::kFilled) client.extension.OnFilled(node);
    if (reply.code == ReplyCode::kContended) client.extension.OnContended(node, reply);
    if (reply.kind != OpKind::kExtend) return;
    const Tally tally = client.extension.OnReply(node, reply);
    if (tally == Tally::kWon) {
      client.until = client.extended_at + kTtl;
      ++found_.extended;
      Alone(state);
    } else if (tally == Tally::kLost && client.extension.Loss()) {
      client.phase = Phase::kOver;  // lost: nothing is freed
      client.until = -1;
      client.may_hold = 0;
    }
  }

  // --- states ----------------------------------------------------------------------------------
  // Both are over, and nothing is under way: nothing of them may stand.
  static void NothingIsLeft(State& state) {
    for (const Client& client : state.clients) {
      if (client.phase != Phase::kOver && client.phase != Phase::kIdle) return;
      if (client.freeing != 0) return;
      if (client.asked != decltype(client.asked){}) return;
    }
    for (const NodeModel& node : state.nodes) {
      const auto holder = node.Holder(kName, Wall(state.now));
      if (!holder) continue;
      const Client& client = state.clients[holder->nonce.bits[0] - 1];
      const bool lost = client.phase == Phase::kOver && client.may_hold == 0 && client.granted != 0;
      if (!lost) state.broken = "an attempt has left something behind";
    }
  }

  void Visit(State state) {
    if (state.broken.empty()) NothingIsLeft(state);
    if (!state.broken.empty()) {
      return search_.Break(fmt::format("{} at tick {}: {}", state.broken, state.now, Print(state)));
    }
    std::string print = Print(state);
    search_.Visit(std::move(state), std::move(print));
  }

  [[nodiscard]] static std::string Print(const State& state) {
    std::string text = fmt::format("{} {} {}", state.now, state.wiped, state.leased & 0xfffffU);
    for (const NodeModel& node : state.nodes) {
      const auto unit = node.Look(kName, Wall(state.now));
      text += '|';
      text += NodeModel::Encode(unit);
      if (unit.state != NodeModel::State::kAbsent) {
        text += fmt::format("x{}", (unit.expires - kStart).count());
      }
      text += node.Quarantined(Wall(state.now)) ? "q" : "";
    }
    for (const Client& one : state.clients) {
      text += fmt::format("|{} {} {}", static_cast<int>(one.phase), one.may_hold, one.freeing);
      for (const auto& asked : one.asked)
        text += asked ? static_cast<char>('a' + int(*asked)) : '-';
      const bool aborts = one.freeing != 0 || one.asked != decltype(one.asked){};
      if (one.phase == Phase::kOver) {
        text +=
            fmt::format(" {} {}", aborts ? one.drawn : 0, one.may_hold == 0 && one.granted != 0);
        continue;
      }
      text += fmt::format(" {} {} {} {} {} {}", one.drawn, one.late_at, one.until, one.extended_at,
                          one.granted, one.round.rest());
      for (const std::string& heard : one.heard) text += heard + '/';
    }
    return text;
  }

  const Rules rules_;
  LockOptions options_;
  model::Search<State> search_;
  Found found_;
};

}  // namespace

Found Search(const Rules& rules, std::size_t most_states) {
  return World(rules, most_states).Run();
}

}  // namespace fencepost::contact_model
