#include "consumer/cli/local/local_servers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/handlers/exec/exec_process.h"

namespace fencepost::cli {
namespace {

constexpr std::chrono::milliseconds kLook{50};
constexpr int kLooks = 400;

tl::unexpected<Error> NoLockNodes(std::string what, std::string hint = "") {
  return tl::unexpected(Error{"no_lock_nodes", std::move(what), "", std::move(hint)});
}

}  // namespace

tl::expected<void, Error> LocalServers::StartKafka(const std::vector<Topic>& topics) {
  auto kafka = consumer::MockCluster::Make();
  if (!kafka) return tl::unexpected(kafka.error());
  kafka_ = std::move(*kafka);
  brokers_ = kafka_->brokers();
  for (const auto& [name, partitions] : topics) {
    if (auto made = kafka_->CreateTopic(name, partitions); !made) return made;
  }
  return {};
}

std::optional<std::string> LocalServers::LockNodeProgram() {
  for (const char* program : {"redis-server", "valkey-server"}) {
    if (consumer::FindProgram(program)) return program;
  }
  return std::nullopt;
}

tl::expected<void, Error> LocalServers::StartLockNodes(int count) {
  const auto program = LockNodeProgram();
  if (!program) {
    return NoLockNodes("there is neither redis-server nor valkey-server in PATH",
                       "install one: apt install redis-server");
  }
  for (int i = 0; i < count; ++i) {
    const auto folder = folder_ / fmt::format("redis-{}", i);
    std::filesystem::create_directories(folder);
    const std::string socket = folder / "socket";
    redis_.push_back(std::make_unique<Child>(
        std::vector<std::string>{*program, "--port", "0", "--unixsocket", socket, "--save", "",
                                 "--appendonly", "no", "--maxmemory-policy", "noeviction", "--dir",
                                 folder.string()},
        folder / "log"));
    lock_nodes_.push_back("unix:" + socket);
  }
  return {};
}

std::optional<std::string> LocalServers::EndedLockNode() const {
  for (const auto& node : redis_) {
    if (!node->Running()) return node->LastWords();
  }
  return std::nullopt;
}

// `locks init` waits for the nodes.
tl::expected<void, Error> LocalServers::InitStore(const std::string& max_ttl) {
  std::vector<std::string> words{
      "/proc/self/exe", "locks", "init", "--redis", fmt::format("{}", fmt::join(lock_nodes_, ",")),
      "--max-ttl",      max_ttl};
  Child init(std::move(words), folder_ / "locks-init");
  for (int look = 0; look < kLooks; ++look) {
    if (const auto ended = init.Wait(kLook)) {
      if (*ended == 0) return {};
      return NoLockNodes("locks init failed: " + init.LastWords());
    }
    if (const auto said = EndedLockNode()) return NoLockNodes("a lock node ended: " + *said);
  }
  return NoLockNodes("the lock nodes do not answer: " + redis_.front()->LastWords());
}

}  // namespace fencepost::cli
