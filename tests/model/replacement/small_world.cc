#include "tests/model/replacement/small_world.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "locking/core/store/sentinel.h"
#include "locking/core/store/store.h"
#include "tests/support/sentinel_node.h"

namespace fencepost::replacement_model {
namespace {

using namespace locking;  // NOLINT(google-build-using-namespace): its words are this world's
using std::chrono::seconds;

constexpr WallTime kStart{Millis(1'800'000'000'000)};
constexpr Nanos kBoot = seconds(1000);
constexpr int kNodes = 5;  // 0 to 2 have the store, 3 and 4 are new
constexpr int kReplaced = 2;
constexpr Millis kMaxTtl{6'000};
constexpr Millis kMaxSkew{2'000};
constexpr Millis kQuarantine = kMaxTtl + 2 * kMaxSkew;
constexpr Nanos kOneWay = Millis(1);
constexpr Nanos kBreaksAfter = seconds(1);
constexpr Nanos kReconnect = Millis(700);
constexpr Nanos kDisturbed = seconds(16);  // from the beginning on
constexpr Nanos kEnd = seconds(60);

struct Node : SentinelNode {
  std::optional<Sentinel> complete;  // the sentinel, if it is
  bool up = true;
  int incarnation = 0;
  std::optional<Nanos> forgot_at;
};

// After each change of its text.
void Read(Node& node) {
  node.complete = node.sentinel ? Sentinel::Decode(*node.sentinel) : std::nullopt;
  if (node.complete && !node.complete->complete) node.complete.reset();
}

struct Link {
  bool connected = false;
  bool busy = false;
  int generation = 0;   // what is of another is void
  int incarnation = 0;  // of the node it leads to
};

struct Client {
  ListingClient is;
  std::unique_ptr<Store> store;
  std::vector<Link> links;
  int life = 0;
  Nanos timer = Nanos::max();
};

struct Message {
  std::size_t client = 0;
  NodeIndex place = 0;
  int generation = 0;
  int incarnation = 0;
  bool hello = false;
  StoreCommand command;
  NodeInfo answer;
};

struct Disturbed {
  std::size_t message = 0;
  Disturbance how = Disturbance::kLost;
};

class World {
 public:
  World(const Scenario& scenario, std::vector<Disturbed> disturbed)
      : disturbed_(std::move(disturbed)) {
    options_.max_ttl = kMaxTtl;
    options_.ttl = kMaxTtl / 2;
    options_.max_skew = kMaxSkew;
    for (int i = 0; i < kNodes; ++i) {
      nodes_[i].run_id = fmt::format("{:040}", i);
      if (i <= kReplaced) nodes_[i].sentinel = SentinelOf(i);
      Read(nodes_[i]);
    }
    for (const ListingClient& one : scenario.clients) {
      clients_.push_back({.is = one, .store = {}, .links = std::vector<Link>(3)});
      const std::size_t index = clients_.size() - 1;
      At(one.starts, [this, index] { Begin(index); });
    }
    At(scenario.away, [this] {
      nodes_[kReplaced].up = false;
      ++nodes_[kReplaced].incarnation;
      BreakAll();
    });
    if (scenario.fate == Fate::kGone) return;
    At(scenario.back, [this, empty = scenario.fate == Fate::kComesBackEmpty] {
      Node& node = nodes_[kReplaced];
      node.up = true;
      node.run_id = fmt::format("{:040}", 99);
      node.forgot_at = now_;
      if (empty) node.sentinel.reset();
      Read(node);
    });
  }

  void Run() {
    while (!events_.empty() && now_ < kEnd && !violation_) {
      auto event = events_.extract(events_.begin());
      now_ = event.key();
      event.mapped()();
      Check();
    }
    if (!violation_) CheckEnd();
  }

  [[nodiscard]] const std::vector<bool>& writes() const { return writes_; }
  [[nodiscard]] const std::optional<std::string>& violation() const { return violation_; }
  [[nodiscard]] bool Replaced() const {
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const Client& client = clients_[i];
      if (client.store && client.store->Available() && Counting(i).size() == 3) return true;
    }
    return false;
  }

 private:
  static std::string SentinelOf(int index) {
    return CompleteSentinel(fmt::format("{:040}", index), index, 3, kMaxTtl).Encode();
  }
  [[nodiscard]] WallTime Wall() const { return kStart + std::chrono::floor<Millis>(now_); }
  [[nodiscard]] Now Time() const { return {Instant(kBoot + now_), Wall()}; }
  Node& NodeOf(const Client& client, NodeIndex place) {
    return nodes_[client.is.nodes[static_cast<std::size_t>(place)]];
  }
  void At(Nanos when, std::function<void()> run) { events_.emplace(when, std::move(run)); }
  void In(Nanos delay, std::function<void()> run) { At(now_ + delay, std::move(run)); }

  // --- clients ---------------------------------------------------------------------------------
  void Begin(std::size_t index) {
    Client& client = clients_[index];
    const auto life = static_cast<std::uint64_t>(client.life);
    client.store = std::make_unique<Store>(3, options_, StoreCreation::kQuarantined,
                                           Nonce{{index + 1, life}}, nullptr);
    client.timer = Nanos::max();
    Act(index);
  }

  static void End(Client& client) {
    ++client.life;
    client.store.reset();
    for (Link& link : client.links) link = {.generation = link.generation + 1};
  }

  // All that it has to say now, and when it wants to be woken.
  void Act(std::size_t index) {
    Client& client = clients_[index];
    const int life = client.life;
    for (NodeIndex place = 0; place < 3; ++place) {
      Link& link = client.links[static_cast<std::size_t>(place)];
      if (link.busy) continue;
      if (!link.connected) {
        Connect(index, place);
      } else if (auto command = client.store->TakeCommand(place)) {
        Send(index, place, std::move(*command), /*hello=*/false);
      }
      if (client.life != life) return;  // it has ended
    }
    const Nanos wake = client.store->NextTime() == Instant::max()
                           ? Nanos::max()
                           : client.store->NextTime().time_since_epoch() - kBoot;
    if (wake >= client.timer || wake == Nanos::max()) return;
    client.timer = wake;
    At(std::max(wake, now_), [this, index, life = client.life, wake] {
      Client& woken = clients_[index];
      if (woken.life != life || woken.timer != wake) return;
      woken.timer = Nanos::max();
      woken.store->OnTime(Time());
      Act(index);
    });
  }

  void Connect(std::size_t index, NodeIndex place) {
    Client& client = clients_[index];
    Link& link = client.links[static_cast<std::size_t>(place)];
    link.busy = true;
    if (NodeOf(client, place).up) {
      Send(index, place, {}, /*hello=*/true);
      return;
    }
    In(kReconnect, [this, index, place, generation = link.generation, life = client.life] {
      Client& again = clients_[index];
      Link& its = again.links[static_cast<std::size_t>(place)];
      if (again.life != life || its.generation != generation) return;
      its.busy = false;
      Act(index);
    });
  }

  void Break(std::size_t index, NodeIndex place) {
    Client& client = clients_[index];
    Link& link = client.links[static_cast<std::size_t>(place)];
    const bool connected = link.connected;
    link = {.generation = link.generation + 1};
    if (connected) client.store->OnDisconnected(place, Time());
    Act(index);
  }

  void BreakAll() {
    for (std::size_t index = 0; index < clients_.size(); ++index) {
      if (clients_[index].store == nullptr) continue;
      for (NodeIndex place = 0; place < 3; ++place) {
        const auto at = static_cast<std::size_t>(place);
        if (clients_[index].is.nodes[at] == kReplaced) Break(index, place);
      }
    }
  }

  // --- messages --------------------------------------------------------------------------------
  void Send(std::size_t index, NodeIndex place, StoreCommand command, bool hello) {
    Client& client = clients_[index];
    Link& link = client.links[static_cast<std::size_t>(place)];
    link.busy = true;
    const auto message = std::make_shared<Message>();
    message->client = index;
    message->place = place;
    message->generation = link.generation;
    message->incarnation = NodeOf(client, place).incarnation;
    message->hello = hello;
    message->command = std::move(command);
    message->answer.call.sent_at = Instant(kBoot + now_);
    const std::size_t number = sent_++;
    if (now_ < kDisturbed) {
      writes_.push_back(!hello && message->command.kind == StoreCommand::Kind::kWrite);
    }
    std::optional<Disturbance> how;
    for (const Disturbed& one : disturbed_) {
      if (one.message == number) how = one.how;
    }
    if (!how) return Pass(message, kOneWay, kOneWay);
    switch (*how) {
      case Disturbance::kAnswerSlow:
        return Pass(message, kOneWay, seconds(1));
      case Disturbance::kClientRestarts:
        Pass(message, kOneWay, kOneWay);
        End(client);
        return In(Millis(100), [this, index] { Begin(index); });
      case Disturbance::kAnswerLost:
        In(kOneWay, [this, message] { Execute(*message); });
        break;
      case Disturbance::kLate:
        In(seconds(6), [this, message] { Execute(*message); });
        break;
      case Disturbance::kVeryLate:
        In(seconds(12), [this, message] { Execute(*message); });
        break;
      default:
        break;
    }
    In(kBreaksAfter, [this, message] {
      if (Stands(*message)) Break(message->client, message->place);
    });
  }

  void Pass(const std::shared_ptr<Message>& message, Nanos there, Nanos back) {
    In(there, [this, message, back] {
      if (!Execute(*message)) return;
      In(back, [this, message] {
        if (Stands(*message)) Deliver(*message);
      });
    });
  }

  [[nodiscard]] bool Stands(const Message& message) const {
    const Client& client = clients_[message.client];
    return client.store != nullptr &&
           client.links[static_cast<std::size_t>(message.place)].generation == message.generation;
  }

  bool Execute(Message& message) {
    Node& node = NodeOf(clients_[message.client], message.place);
    if (!node.up || node.incarnation != message.incarnation) {
      if (Stands(message)) Break(message.client, message.place);
      return false;
    }
    const bool write = !message.hello && message.command.kind == StoreCommand::Kind::kWrite;
    if (write && node.Write(message.command.write, Wall())) Read(node);
    node.Describe(Wall(), message.answer);
    return true;
  }

  void Deliver(Message& message) {
    Client& client = clients_[message.client];
    Link& link = client.links[static_cast<std::size_t>(message.place)];
    link.busy = false;
    link.connected = true;
    link.incarnation = message.incarnation;
    message.answer.call.received_at = Instant(kBoot + now_);
    if (message.hello || message.command.kind == StoreCommand::Kind::kProbe) {
      client.store->OnConnected(message.place, message.answer, Time());
    } else {
      client.store->OnSentinel(message.place, message.answer.sentinel, message.answer.call, Time());
    }
    Act(message.client);
  }

  // --- what may never be -----------------------------------------------------------------------
  void Violate(std::string what) {
    if (!violation_) violation_ = fmt::format("at {} ms: {}", now_ / Millis(1), what);
  }

  // The nodes that this client would count a grant of, their own word included.
  [[nodiscard]] std::set<int> Counting(std::size_t index) const {
    const Client& client = clients_[index];
    std::set<int> counting;
    for (NodeIndex place = 0; place < 3; ++place) {
      const auto at = static_cast<std::size_t>(place);
      const Node& node = nodes_[client.is.nodes[at]];
      const Link& link = client.links[at];
      if (!link.connected || link.incarnation != node.incarnation || !node.up) continue;
      if (!client.store->Open(place) || client.store->Quarantined(place)) continue;
      if (!node.complete || Wall() < node.complete->quarantine_until) continue;
      counting.insert(client.is.nodes[at]);
    }
    return counting;
  }

  void Check() {
    OnePlaceOneNode();
    for (std::size_t index = 0; index < clients_.size(); ++index) {
      const Client& client = clients_[index];
      if (client.store == nullptr || !client.store->Available()) continue;
      const std::set<int> counting = Counting(index);
      for (const int node : counting) {
        const auto& forgot = nodes_[node].forgot_at;
        if (forgot && now_ < *forgot + kQuarantine) {
          Violate(fmt::format("client {} counts node {}, which has just forgotten", index, node));
        }
      }
      if (counting.size() < 2) continue;
      MeetsAllOthers(index, counting);
    }
  }

  // Each of its quorums has a node in common with each that another counted within a lease's life.
  void MeetsAllOthers(std::size_t index, const std::set<int>& counting) {
    for (const auto& [other, when] : counted_) {
      if (now_ - when > kMaxTtl) continue;
      std::set<int> both = counting;
      both.insert(other.begin(), other.end());
      if (both.size() < 4) continue;
      Violate(fmt::format("client {} counts nodes {}, and {} were counted {} ms ago", index,
                          fmt::join(counting, ","), fmt::join(other, ","),
                          (now_ - when) / Millis(1)));
    }
    counted_[counting] = now_;
  }

  void OnePlaceOneNode() {
    std::set<std::pair<int, std::uint32_t>> places;
    for (const Node& node : nodes_) {
      if (!node.complete || node.complete->epoch % 2 == 0) continue;
      const auto [place, epoch] = std::pair(node.complete->index, node.complete->epoch);
      if (!places.insert({place, epoch}).second) {
        Violate(fmt::format("two nodes have place {} at epoch {}", place, epoch));
      }
    }
  }

  // Somebody can lock, and who cannot says why.
  void CheckEnd() {
    bool any = false;
    for (std::size_t index = 0; index < clients_.size(); ++index) {
      const Store& store = *clients_[index].store;
      any = any || store.Available();
      if (!store.Available() && !store.Problem()) {
        Violate(fmt::format("client {} has no quorum and no problem", index));
      }
    }
    if (!any) Violate("nobody can lock in the end");
  }

  const std::vector<Disturbed> disturbed_;
  LockOptions options_;
  Node nodes_[kNodes];
  std::vector<Client> clients_;
  std::multimap<Nanos, std::function<void()>> events_;
  Nanos now_{0};
  std::size_t sent_ = 0;
  std::vector<bool> writes_;
  std::map<std::set<int>, Nanos> counted_;
  std::optional<std::string> violation_;
};

std::string Story(const Scenario& scenario, const std::vector<Disturbed>& disturbed) {
  std::string text = scenario.name;
  for (const Disturbed& one : disturbed) {
    text += fmt::format(", message {} disturbed by {}", one.message, static_cast<int>(one.how));
  }
  return text;
}

// Of this history: the messages that may be disturbed, and which of them are writes.
std::vector<bool> RunOne(const Scenario& scenario, const std::vector<Disturbed>& disturbed,
                         Found& found) {
  World world(scenario, disturbed);
  world.Run();
  ++found.histories;
  found.replaced += world.Replaced() ? 1 : 0;
  if (world.violation() && !found.violation) {
    found.violation = Story(scenario, disturbed) + ": " + *world.violation();
  }
  return world.writes();
}

}  // namespace

Found Search(const Scenario& scenario, Pairs pairs) {
  Found found;
  const auto disturb = [&](const std::vector<Disturbed>& before, const std::vector<bool>& writes,
                           const auto& then) {
    const std::size_t from = before.empty() ? 0 : before.back().message + 1;
    for (std::size_t message = from; message < writes.size(); ++message) {
      if (!before.empty() && pairs == Pairs::kOfWrites && !writes[message]) continue;
      for (int how = 0; how < static_cast<int>(Disturbance::kCount); ++how) {
        std::vector<Disturbed> disturbed = before;
        disturbed.push_back({message, static_cast<Disturbance>(how)});
        const std::vector<bool> next = RunOne(scenario, disturbed, found);
        if (found.violation) return;
        then(disturbed, next, writes[message]);
        if (found.violation) return;
      }
    }
  };
  const std::vector<bool> usual = RunOne(scenario, {}, found);
  if (found.violation) return found;
  disturb({}, usual, [&](const auto& one, const auto& writes, bool of_a_write) {
    if (pairs == Pairs::kOfWrites && !of_a_write) return;
    disturb(one, writes, [](const auto&, const auto&, bool) {});
  });
  return found;
}

}  // namespace fencepost::replacement_model
