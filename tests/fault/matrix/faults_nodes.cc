// What happens to lock nodes: to one, to as many as a store lives without, to a majority, to all.
#include <fmt/format.h>

#include "tests/fault/matrix/faults.h"

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::RedisServer;

namespace {

enum class Many : std::uint8_t { kOne, kMinority, kMajority, kAll };

std::size_t CountOf(Many many, std::size_t nodes) {
  switch (many) {
    case Many::kOne:
      return 1;
    case Many::kMinority:
      return nodes / 2;
    case Many::kMajority:
      return nodes / 2 + 1;
    case Many::kAll:
      return nodes;
  }
  return 1;
}

std::string NameOf(const char* what, Many many) {
  constexpr std::array kNames = {"node", "nodes-minority", "nodes-majority", "nodes-all"};
  return fmt::format("{}-{}", kNames.at(static_cast<std::size_t>(many)), what);
}

using Act = std::function<void(RedisServer&)>;

// Throws where the node refuses.
Act Command(std::vector<std::string> words) {
  return [words = std::move(words)](RedisServer& node) {
    const std::string answer = node.Command(words);
    if (answer != "OK") throw std::runtime_error(fmt::format("{}: {}", words.at(0), answer));
  };
}

void Nothing(RedisServer&) {}

void Add(std::vector<Fault>& faults, const char* what, std::vector<Many> all, milliseconds lasts,
         const Act& begin, const Act& end) {
  for (const Many many : all) {
    faults.push_back({NameOf(what, many), lasts, [many, begin, end](Scene& scene) {
                        for (const std::size_t at :
                             scene.Nodes(CountOf(many, scene.system.nodes()))) {
                          RedisServer& node = scene.system.node(at);
                          scene.undo.Add([&node, end] { end(node); });
                          begin(node);
                        }
                      }});
  }
}

void AddSettings(std::vector<Fault>& faults) {
  const seconds lasts{2};
  Add(faults, "read-only", {Many::kOne, Many::kMajority}, lasts,
      Command({"CONFIG", "SET", "min-replicas-to-write", "1"}),
      Command({"CONFIG", "SET", "min-replicas-to-write", "0"}));
  Add(faults, "out-of-memory", {Many::kOne, Many::kMajority}, lasts,
      Command({"CONFIG", "SET", "maxmemory", "1"}), Command({"CONFIG", "SET", "maxmemory", "0"}));
  Add(faults, "evicting", {Many::kOne, Many::kMajority}, lasts,
      Command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}),
      Command({"CONFIG", "SET", "maxmemory-policy", "noeviction"}));
  Add(faults, "made-a-replica", {Many::kOne}, lasts, Command({"REPLICAOF", "127.0.0.1", "1"}),
      Command({"REPLICAOF", "NO", "ONE"}));
  Add(
      faults, "without-config-command", {Many::kOne}, lasts,
      [](RedisServer& node) {
        node.Configure({R"(rename-command CONFIG "")"});
        node.Restart(RedisServer::Data::kKeep);
      },
      [](RedisServer& node) {
        node.Configure({});
        node.Restart(RedisServer::Data::kKeep);
      });
}

}  // namespace

void AddNodeFaults(std::vector<Fault>& faults) {
  const auto kill = [](RedisServer& node) { node.Kill(); };
  const auto start = [](RedisServer& node) { node.Start(); };
  Add(faults, "killed", {Many::kOne, Many::kMinority, Many::kMajority}, seconds(1), kill, start);
  Add(
      faults, "restarted", {Many::kOne, Many::kAll}, milliseconds(500),
      [](RedisServer& node) { node.Restart(RedisServer::Data::kKeep); }, Nothing);
  Add(
      faults, "restarted-empty", {Many::kOne, Many::kMinority}, milliseconds(500),
      [](RedisServer& node) { node.Restart(RedisServer::Data::kWipe); }, Nothing);
  Add(faults, "flushed", {Many::kOne, Many::kMinority, Many::kMajority, Many::kAll},
      milliseconds(500), Command({"FLUSHALL"}), Nothing);
  Add(
      faults, "frozen", {Many::kOne, Many::kMajority}, seconds(3),
      [](RedisServer& node) { node.Pause(); }, [](RedisServer& node) { node.Resume(); });
  Add(faults, "client-pause", {Many::kOne, Many::kMajority}, milliseconds(2500),
      Command({"CLIENT", "PAUSE", "2000", "ALL"}), Nothing);
  AddSettings(faults);
  for (const int direction : {1, -1}) {
    Add(
        faults, direction > 0 ? "clock-forward" : "clock-back", {Many::kOne, Many::kMinority},
        seconds(2),
        [direction](RedisServer& node) { node.ShiftClock(direction * milliseconds(8000)); },
        [](RedisServer& node) { node.ShiftClock(milliseconds(0)); });
  }
  for (const Many many : {Many::kOne, Many::kMajority}) {
    const std::string name = many == Many::kOne ? "node" : "nodes-majority";
    AddNetworkFaults(faults, name, [many](Scene& scene) {
      std::vector<testing::TcpProxy*> proxies;
      for (const std::size_t at : scene.Nodes(CountOf(many, scene.system.nodes()))) {
        proxies.push_back(&scene.system.node_proxy(at));
      }
      return proxies;
    });
  }
}

}  // namespace fencepost::matrix
