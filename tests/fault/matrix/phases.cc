#include "tests/fault/matrix/phases.h"

#include <algorithm>
#include <mutex>

#include "locking/redis/wire.h"
#include "tests/support/kafka_group.h"

namespace fencepost::matrix {

using std::chrono::seconds;
using testing::TcpProxy;

namespace {

constexpr const char* kSecond = "second_effects";
constexpr int kOffsetCommit = 8;  // api keys of Kafka's protocol
constexpr int kJoinGroup = 11;
constexpr int kEndTransaction = 26;
constexpr int kTransactionalOffsetCommit = 28;

bool Has(std::string_view bytes, std::string_view part) {
  return bytes.find(part) != std::string_view::npos;
}

const std::string& Sha(locking::OpKind kind) { return locking::ScriptFor(kind).sha; }

// A call of the script, or SET … NX GET PXAT.
bool IsAcquire(std::string_view bytes) {
  return Has(bytes, Sha(locking::OpKind::kAcquire)) ||
         Has(bytes, "\r\nNX\r\n$3\r\nGET\r\n$4\r\nPXAT\r\n");
}

bool IsRelease(std::string_view bytes) { return Has(bytes, Sha(locking::OpKind::kRelease)); }

}  // namespace

// Shared with the proxies' threads.
struct PhaseWatch::State {
  std::mutex mutex;
  bool armed = true;
  bool seen = false;
  int client_port = 0;
  int server_port = 0;
  int node = -1;

  // The first one is held.
  bool See(int client, int server, int at_node) {
    const std::lock_guard guard(mutex);
    if (!armed || seen) return false;
    seen = true;
    client_port = client;
    server_port = server;
    node = at_node;
    return true;
  }
  // The last one, which goes on.
  void Note(int client, int server) {
    const std::lock_guard guard(mutex);
    if (!armed) return;
    seen = true;
    client_port = client;
    server_port = server;
  }
  bool Seen() {
    const std::lock_guard guard(mutex);
    return seen;
  }
};

PhaseWatch::PhaseWatch(System& system, Trial& trial, Phase phase, std::uint64_t seed)
    : system_(system),
      trial_(trial),
      phase_(phase),
      seed_(seed),
      state_(std::make_shared<State>()) {}

PhaseWatch::~PhaseWatch() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->armed = false;
  }
  system_.WatchRequests(-1, nullptr);
  if (trial_.HasDatabase()) trial_.database().proxy().Watch(nullptr);
  for (std::size_t i = 0; i < system_.nodes(); ++i) system_.node_proxy(i).Watch(nullptr);
  if (TcpProxy* proxy = ReceiverProxy()) proxy->Watch(nullptr);
  Release();
}

int PhaseWatch::node() const {
  const std::lock_guard guard(state_->mutex);
  return state_->node;
}

void PhaseWatch::WatchProxies() {
  using Passing = TcpProxy::Passing;
  const auto watch = [this](TcpProxy& proxy, int node, std::function<bool(const Passing&)> is_it) {
    proxy.Watch([state = state_, port = proxy.port(), node,
                 is_it = std::move(is_it)](const Passing& passing) {
      return is_it(passing) && state->See(passing.client_port, port, node);
    });
  };
  const auto watch_nodes = [&](bool (*matches)(std::string_view)) {
    for (std::size_t i = 0; i < system_.nodes(); ++i) {
      watch(system_.node_proxy(i), static_cast<int>(i), [matches](const Passing& passing) {
        return passing.way == TcpProxy::Way::kToServer && matches(passing.bytes);
      });
    }
  };
  const auto watch_requests = [&](int api_key) {
    system_.WatchRequests(api_key, [state = state_, port = system_.kafka_proxy().port()](
                                       int client) { return state->See(client, port, -1); });
  };
  switch (phase_) {
    case Phase::kAcquiring:
      return watch_nodes(IsAcquire);
    case Phase::kReleasing:
      return watch_nodes(IsRelease);
    case Phase::kStarting:
      return watch_nodes([](std::string_view bytes) { return Has(bytes, "\r\nLOAD\r\n"); });
    case Phase::kWriting:
      if (!trial_.HasDatabase()) return watch_requests(kEndTransaction);
      // Between the two effects of a record; a writer of SQLite has no such place.
      if (trial_.database().kind() == Database::Kind::kSqlite || seed_ % 4 == 3) {
        lock_ = std::make_unique<testing::TableLock>(trial_.table(), kSecond);
        trial_.database().proxy().Watch(
            [state = state_, port = trial_.database().proxy().port()](const Passing& passing) {
              const bool asked = passing.way == TcpProxy::Way::kToServer &&
                                 Has(passing.bytes, "INSERT INTO") && Has(passing.bytes, kSecond);
              if (asked) state->Note(passing.client_port, port);
              return false;
            });
        return;
      }
      // Half of the time it is done, and the worker does not know.
      return watch(trial_.database().proxy(), -1,
                   trial_.database().Commits(seed_ % 2 == 0 ? TcpProxy::Way::kToServer
                                                            : TcpProxy::Way::kToClient));
    case Phase::kCommitting:
      return watch_requests(trial_.HasDatabase() ? kOffsetCommit : kTransactionalOffsetCommit);
    case Phase::kRebalancing:
      return watch_requests(kJoinGroup);
    case Phase::kHandling:
    case Phase::kDraining:
      if (TcpProxy* proxy = ReceiverProxy()) {
        watch(*proxy, -1, [](const Passing& passing) {
          return passing.way == TcpProxy::Way::kToClient && Has(passing.bytes, "HTTP/1.1");
        });
      } else {
        trial_.receiver()->Hold();
      }
      return;
  }
}

void PhaseWatch::Provoke() {
  if (phase_ == Phase::kRebalancing) {
    testing::RemoveMembers(system_.kafka().bootstrap(), trial_.group());
  } else if (phase_ == Phase::kStarting) {
    worker_ = &trial_.team().Add();
  }
}

// Who it is that was seen. False: it is gone already, and the next one counts.
bool PhaseWatch::Identify() {
  if (worker_ != nullptr) return true;
  pid_t pid = -1;
  {
    const std::lock_guard guard(state_->mutex);
    pid = System::OwnerOf(state_->client_port, state_->server_port, trial_.Pids());
  }
  worker_ = trial_.WorkerOf(pid);
  if (worker_ != nullptr) return true;
  if (!lock_) Release();
  const std::lock_guard guard(state_->mutex);
  state_->seen = false;
  return false;
}

// Who waits for the table, in the words of the server. MariaDB knows no worker's name: there it is
// who has sent the last INSERT, which waits. A file has no server: who holds locks cannot write.
bool PhaseWatch::FindWriter() {
  const bool file = trial_.database().kind() == Database::Kind::kSqlite;
  const auto waiting = trial_.database().WaitFor(trial_.table(), kSecond);
  if (!file && waiting.empty()) return false;
  if (!file && waiting.front().empty()) return state_->Seen() && Identify();
  for (testing::WorkerProcess* worker : trial_.team().Running()) {
    const bool waits = std::ranges::any_of(
        waiting, [&](const std::string& name) { return name.ends_with("/" + worker->name()); });
    if (waits || (file && worker->Now("fencepost_locks_held") > 0)) worker_ = worker;
  }
  return worker_ != nullptr;
}

TcpProxy* PhaseWatch::ReceiverProxy() {
  return trial_.receiver() == nullptr ? nullptr : trial_.receiver()->proxy();
}

bool PhaseWatch::Await(testing::Deadline limit) {
  const bool script =
      (phase_ == Phase::kHandling || phase_ == Phase::kDraining) && ReceiverProxy() == nullptr;
  const std::size_t calls = script ? trial_.receiver()->Calls().size() : 0;
  WatchProxies();
  Provoke();
  const auto seen = [&] {
    if (lock_) return FindWriter();
    if (!script) return state_->Seen() && Identify();
    const auto all = trial_.receiver()->Calls();
    if (all.size() <= calls) return false;
    worker_ = &trial_.team()[static_cast<std::size_t>(all.back().life)];
    return worker_->Running();
  };
  if (!trial_.FeedUntil(limit, seen)) return false;
  if (phase_ != Phase::kDraining) return true;
  worker_->Terminate();
  return testing::WaitUntil(limit, [&] {
    return worker_->Readiness().find("draining") != std::string::npos || !worker_->Running();
  });
}

void PhaseWatch::Release() {
  lock_.reset();
  if (trial_.receiver() != nullptr) trial_.receiver()->Release();
  if (TcpProxy* proxy = ReceiverProxy()) proxy->Release();
  system_.kafka_proxy().Release();
  if (trial_.HasDatabase()) trial_.database().proxy().Release();
  for (std::size_t i = 0; i < system_.nodes(); ++i) system_.node_proxy(i).Release();
}

}  // namespace fencepost::matrix
