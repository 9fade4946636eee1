#include "locking/redis/engine/engine.h"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/redis/engine/access.h"
#include "locking/redis/node/connection.h"
#include "locking/redis/wake/subscriber.h"

namespace fencepost::locking {
namespace {

constexpr Millis kLongestSleep{250};

}  // namespace

class RedisEngine::Node : public NodeClient, public SubscriberClient {
 public:
  Node(RedisEngine& engine, NodeIndex index, const ConnectionOptions& options)
      : engine_(engine),
        index_(index),
        subscriber(engine.io_, options, *this),
        connection(engine.io_, options, *this) {}

  bool Open() override { return engine_.core_.store().Open(index_); }
  std::size_t TakeBatch(std::vector<Op>& out) override {
    return engine_.core_.TakeBatch(index_, out);
  }
  std::optional<StoreCommand> TakeCommand() override {
    return engine_.core_.store().TakeCommand(index_);
  }
  void OnConnected(const NodeInfo& info, Now now) override {
    engine_.core_.OnConnected(index_, info, now);
    engine_.StoreChanged(now);
  }
  void OnDisconnected(Now now) override {
    engine_.core_.OnDisconnected(index_, now);
    engine_.HandedIn();
  }
  void OnStalled(bool stalled, Now now) override {
    engine_.core_.OnStalled(index_, stalled, now);
    engine_.HandedIn();
  }
  void OnSentinel(std::optional<std::string> current, const CallInfo& call, Now now) override {
    engine_.core_.store().OnSentinel(index_, std::move(current), call, now);
    engine_.StoreChanged(now);
  }
  void OnNoSentinel(Now now) override {
    engine_.core_.store().OnNoSentinel(index_, now);
    engine_.HandedIn();
  }
  void OnCall(OpKind kind, std::size_t keys, const CallInfo& call, Now now) override {
    engine_.core_.store().OnCall(index_, call, now);
    if (engine_.observer_ != nullptr) {
      engine_.observer_->OnCall(index_, kind, keys, call.received_at - call.sent_at);
    }
  }
  void OnReplies(const std::vector<Reply>& replies, Now now) override {
    engine_.core_.OnReplies(index_, replies, now);
    engine_.HandedIn();
  }
  void OnReconnect() override {
    if (engine_.observer_ != nullptr) engine_.observer_->OnReconnect(index_);
  }
  void OnCommandError(CommandError error) override {
    if (engine_.observer_ != nullptr) engine_.observer_->OnCommandError(index_, error);
  }
  void OnNote(Severity severity, std::string_view event, std::string_view text) override {
    if (engine_.observer_ != nullptr) engine_.observer_->OnNote(severity, event, text);
  }
  void OnIdle() override { engine_.Kick(); }
  void OnFreed(std::string_view name) override {
    engine_.core_.OnFreed(index_, name, ReadClocks());
    engine_.HandedIn();
  }

 private:
  RedisEngine& engine_;
  const NodeIndex index_;

 public:
  Subscriber subscriber;
  Connection connection;  // these two last: their handlers use the members above
};

RedisEngine::RedisEngine(asio::io_context& io, LockCore& core, const RedisOptions& redis,
                         const LockOptions& options, LockObserver* observer,
                         std::function<void()> on_step)
    : io_(io), core_(core), observer_(observer), on_step_(std::move(on_step)), timer_(io) {
  FENCEPOST_CHECK(!redis.nodes.empty() && redis.nodes.size() <= kMaxNodes,
                  fmt::format("{} nodes", redis.nodes.size()));
  for (ConnectionOptions& connection : MakeConnections(redis, options)) {
    connection.names = std::make_shared<NameLookup>(io, connection.look_up);
    nodes_.push_back(
        std::make_unique<Node>(*this, static_cast<NodeIndex>(nodes_.size()), connection));
  }
}

// Only the store received an input: OnTime lets the core look at it.
void RedisEngine::StoreChanged(Now now) {
  core_.OnTime(now);
  HandedIn();
}

void RedisEngine::HandedIn() {
  handed_in_ = true;
  Kick();
}

void RedisEngine::Kick() {
  if (std::exchange(kicked_, true)) return;
  asio::post(io_, [this, watch = std::weak_ptr<char>(alive_)] {
    if (!watch.expired()) Pass();
  });
}

// What gathered since the last pass is handled in one go: events first, since acting on them makes
// operations, then everything that is queued is sent. A Kick from on_step is served by this pass.
void RedisEngine::Pass() {
  const Now now = ReadClocks();
  if (core_.NextTime() <= now.boot) {
    core_.OnTime(now);
    handed_in_ = true;
  }
  if (std::exchange(handed_in_, false) || !core_.events().empty()) on_step_();
  kicked_ = false;
  if (!core_.events().empty()) Kick();  // made by what on_step did, at once
  for (const WatchChange& change : std::exchange(core_.watch_changes(), {})) {
    for (const auto& node : nodes_) {
      change.on ? node->subscriber.Watch(change.name) : node->subscriber.Unwatch(change.name);
    }
  }
  for (const auto& node : nodes_) node->connection.Pump();
  ArmTimer(core_.NextTime());
}

// A timer that is armed for an earlier time is left alone: it finds nothing due and is armed
// again. Asio's timers stop while the machine is suspended, leases do not: so no long sleeps.
void RedisEngine::ArmTimer(Instant next) {
  if (next >= armed_for_ || next == Instant::max()) return;
  armed_for_ = next;
  timer_.expires_after(std::clamp<Nanos>(next - BootClock::now(), Nanos(0), kLongestSleep));
  timer_.async_wait([this, watch = std::weak_ptr<char>(alive_)](std::error_code error) {
    if (error || watch.expired()) return;
    armed_for_ = Instant::max();
    Kick();
  });
}

RedisEngine::~RedisEngine() = default;

void RedisEngine::Start() {
  for (const auto& node : nodes_) node->connection.Start();
  Kick();
}

const NodeUnavailable& RedisEngine::Away(int node) const {
  return nodes_.at(static_cast<std::size_t>(node))->connection.Away();
}

std::string RedisEngine::Refuses(int node) const {
  return nodes_.at(static_cast<std::size_t>(node))->connection.Refuses(BootClock::now());
}

bool RedisEngine::Quiet() const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const bool queued = core_.HasOps(static_cast<NodeIndex>(i));
    if (queued || nodes_[i]->connection.Busy()) return false;
  }
  return true;
}

}  // namespace fencepost::locking
