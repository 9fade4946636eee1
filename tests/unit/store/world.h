// Lock nodes and clients' Stores in one process, with time and message order under the test's
// thumb: enough of Redis to answer a probe and the compare-and-set of a sentinel.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "locking/core/store/store.h"
#include "tests/support/sentinel_node.h"

namespace fencepost::locking {

std::string RunId(int number);  // 40 characters; every fourth number sorts backwards

struct FakeNode : SentinelNode {
  Millis skew{0};       // of its wall clock
  int incarnation = 0;  // a connection belongs to one
  bool up = true;
  std::optional<Instant> forgot_at;  // when it last lost memory that leases may rest on
};

struct Told : LockObserver {
  int restarts = 0;
  std::vector<bool> quorum;
  std::vector<std::string> notes;
  std::vector<Nanos> offsets;
  void OnRestartDetected(NodeIndex) override { ++restarts; }
  void OnQuorum(bool available) override { quorum.push_back(available); }
  void OnClockOffset(NodeIndex, Nanos offset) override { offsets.push_back(offset); }
  void OnNote(Severity, std::string_view event, std::string_view) override {
    notes.emplace_back(event);
  }
  [[nodiscard]] int Notes(const std::string& event) const;
};

class World {
 public:
  explicit World(int nodes, std::uint64_t seed = 1);

  // A client that lists these nodes. Returns its number.
  int AddClient(std::vector<int> list, StoreCreation creation = StoreCreation::kQuarantined);

  // One random thing happens: a request leaves, reaches its node, an answer comes, or time goes on.
  void Step();
  // Everything that can happen does, in order, without faults, until `span` has passed.
  void Run(Millis span);
  // As Run, until the client is available; false when it is not within `span`.
  bool RunUntilAvailable(int client, Millis span = Millis(120'000));

  void Wipe(int node);                     // FLUSHALL: connections stay
  void Restart(int node, bool with_data);  // another process
  void Down(int node, bool down);
  void BreakLink(int client, int place);
  // What INFO does not show this client.
  void Hide(int client, void (*hide)(NodeInfo&)) { clients_[Z(client)]->hide = hide; }
  void Pass(Millis time) { time_ += time; }

  [[nodiscard]] Now now() const;
  [[nodiscard]] WallTime NodeTime(int node) const { return now().wall + nodes[Z(node)].skew; }
  [[nodiscard]] std::optional<Sentinel> SentinelOf(int node) const;
  // The nodes that this client would count a grant of, the nodes' own word included.
  [[nodiscard]] std::set<int> Counting(int client) const;
  [[nodiscard]] std::size_t clients() const { return clients_.size(); }
  Store& store(int client) { return *clients_[Z(client)]->store; }
  Told& told(int client) { return clients_[Z(client)]->told; }
  [[nodiscard]] const std::vector<int>& list(int client) const { return clients_[Z(client)]->list; }
  std::mt19937_64& random() { return random_; }
  [[nodiscard]] int writes() const { return writes_; }
  [[nodiscard]] int commands() const { return commands_; }

  std::vector<FakeNode> nodes;
  LockOptions options;

 private:
  struct Link {
    bool connected = false;
    int incarnation = 0;
    bool busy = false;      // a request is out
    bool hello = false;     // … the first of this connection
    bool executed = false;  // … and the node has done it
    StoreCommand command;
    NodeInfo answer;
  };
  struct Client {
    Told told;
    std::unique_ptr<Store> store;
    std::vector<int> list;
    std::vector<Link> links;
    void (*hide)(NodeInfo&) = [](NodeInfo&) {};
  };
  static std::size_t Z(int index) { return static_cast<std::size_t>(index); }
  bool Advance(Client& client, int place);  // takes this link one step on, if there is one
  bool Send(Client& client, int place);
  void Execute(FakeNode& node, Link& link);
  void Deliver(Client& client, int place);
  bool Busy();

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Client>> clients_;
  Nanos time_{Millis(1'000)};
  int next_run_id_ = 100;
  int writes_ = 0;
  int commands_ = 0;
};

// For each pair of clients whose lists differ: could both have counted a quorum within one longest
// lease, with no node in common?
class QuorumOracle {
 public:
  explicit QuorumOracle(World& world) : world_(world) {}

  void Look();
  [[nodiscard]] bool Disjoint() const;

 private:
  World& world_;
  std::map<std::pair<int, std::set<int>>, Instant> history_;  // when last
};

}  // namespace fencepost::locking
