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

struct RedisEngine::Impl {
  // One node's connection, tied to the core.
  class Node : public NodeClient, public SubscriberClient {
   public:
    Node(Impl& engine, NodeIndex index, const ConnectionOptions& options)
        : engine_(engine),
          index_(index),
          subscriber(engine.io, options, *this),
          connection(engine.io, options, *this) {}

    bool Open() override { return engine_.core.store().Open(index_); }
    std::size_t TakeBatch(std::vector<Op>& out) override {
      return engine_.core.TakeBatch(index_, out);
    }
    std::optional<StoreCommand> TakeCommand() override {
      return engine_.core.store().TakeCommand(index_);
    }
    void OnConnected(const NodeInfo& info, Now now) override {
      engine_.core.OnConnected(index_, info, now);
      engine_.StoreChanged(now);
    }
    void OnDisconnected(Now now) override {
      engine_.core.OnDisconnected(index_, now);
      engine_.HandedIn();
    }
    void OnStalled(bool stalled, Now now) override {
      engine_.core.OnStalled(index_, stalled, now);
      engine_.HandedIn();
    }
    void OnSentinel(std::optional<std::string> current, const CallInfo& call, Now now) override {
      engine_.core.store().OnSentinel(index_, std::move(current), call, now);
      engine_.StoreChanged(now);
    }
    void OnNoSentinel(Now now) override {
      engine_.core.store().OnNoSentinel(index_, now);
      engine_.HandedIn();
    }
    void OnCall(OpKind kind, std::size_t keys, const CallInfo& call, Now now) override {
      engine_.core.store().OnCall(index_, call, now);
      if (engine_.observer != nullptr) {
        engine_.observer->OnCall(index_, kind, keys, call.received_at - call.sent_at);
      }
    }
    void OnReplies(const std::vector<Reply>& replies, Now now) override {
      engine_.core.OnReplies(index_, replies, now);
      engine_.HandedIn();
    }
    void OnReconnect() override {
      if (engine_.observer != nullptr) engine_.observer->OnReconnect(index_);
    }
    void OnCommandError(CommandError error) override {
      if (engine_.observer != nullptr) engine_.observer->OnCommandError(index_, error);
    }
    void OnNote(Severity severity, std::string_view event, std::string_view text) override {
      if (engine_.observer != nullptr) engine_.observer->OnNote(severity, event, text);
    }
    void OnIdle() override { engine_.Kick(); }
    void OnFreed(std::string_view name) override {
      engine_.core.OnFreed(index_, name, ReadClocks());
      engine_.HandedIn();
    }

   private:
    Impl& engine_;
    const NodeIndex index_;

   public:
    Subscriber subscriber;
    Connection connection;  // these two last: their handlers use the members above
  };

  Impl(asio::io_context& context, LockCore& lock_core, const RedisOptions& redis,
       const LockOptions& options, LockObserver* watcher, std::function<void()> step);

  void Kick();
  void Pass();
  void StoreChanged(Now now);
  void HandedIn();
  void ArmTimer(Instant next);

  asio::io_context& io;
  LockCore& core;
  LockObserver* observer;
  std::function<void()> on_step;
  std::shared_ptr<char> alive = std::make_shared<char>();  // handlers look whether it still is
  std::vector<std::unique_ptr<Node>> nodes;
  asio::steady_timer timer;
  Instant armed_for = Instant::max();
  bool kicked = false;     // a pass is posted, or runs and has yet to pump
  bool handed_in = false;  // on_step was not called since
};

RedisEngine::Impl::Impl(asio::io_context& context, LockCore& lock_core, const RedisOptions& redis,
                        const LockOptions& options, LockObserver* watcher,
                        std::function<void()> step)
    : io(context), core(lock_core), observer(watcher), on_step(std::move(step)), timer(context) {
  FENCEPOST_CHECK(!redis.nodes.empty() && redis.nodes.size() <= kMaxNodes,
                  fmt::format("{} nodes", redis.nodes.size()));
  for (ConnectionOptions& connection : MakeConnections(redis, options)) {
    connection.names = std::make_shared<NameLookup>(io, connection.look_up);
    nodes.push_back(
        std::make_unique<Node>(*this, static_cast<NodeIndex>(nodes.size()), connection));
  }
}

// Only the store received an input: OnTime lets the core look at it.
void RedisEngine::Impl::StoreChanged(Now now) {
  core.OnTime(now);
  HandedIn();
}

void RedisEngine::Impl::HandedIn() {
  handed_in = true;
  Kick();
}

void RedisEngine::Impl::Kick() {
  if (std::exchange(kicked, true)) return;
  asio::post(io, [this, watch = std::weak_ptr<char>(alive)] {
    if (!watch.expired()) Pass();
  });
}

// What gathered since the last pass is handled in one go: events first, since acting on them makes
// operations, then everything that is queued is sent. A Kick from on_step is served by this pass.
void RedisEngine::Impl::Pass() {
  const Now now = ReadClocks();
  if (core.NextTime() <= now.boot) {
    core.OnTime(now);
    handed_in = true;
  }
  if (std::exchange(handed_in, false) || !core.events().empty()) on_step();
  kicked = false;
  if (!core.events().empty()) Kick();  // made by what on_step did, at once
  for (const WatchChange& change : std::exchange(core.watch_changes(), {})) {
    for (const auto& node : nodes) {
      change.on ? node->subscriber.Watch(change.name) : node->subscriber.Unwatch(change.name);
    }
  }
  for (const auto& node : nodes) node->connection.Pump();
  ArmTimer(core.NextTime());
}

// A timer that is armed for an earlier time is left alone: it finds nothing due and is armed again.
// Asio's timers stop while the machine is suspended, leases do not: so no long sleeps.
void RedisEngine::Impl::ArmTimer(Instant next) {
  if (next >= armed_for || next == Instant::max()) return;
  armed_for = next;
  timer.expires_after(std::clamp<Nanos>(next - BootClock::now(), Nanos(0), kLongestSleep));
  timer.async_wait([this, watch = std::weak_ptr<char>(alive)](std::error_code error) {
    if (error || watch.expired()) return;
    armed_for = Instant::max();
    Kick();
  });
}

RedisEngine::RedisEngine(asio::io_context& io, LockCore& core, const RedisOptions& redis,
                         const LockOptions& options, LockObserver* observer,
                         std::function<void()> on_step)
    : impl_(std::make_unique<Impl>(io, core, redis, options, observer, std::move(on_step))) {}

RedisEngine::~RedisEngine() = default;

void RedisEngine::Start() {
  for (const auto& node : impl_->nodes) node->connection.Start();
  impl_->Kick();
}

void RedisEngine::Kick() { impl_->Kick(); }

const NodeUnavailable& RedisEngine::Away(int node) const {
  return impl_->nodes.at(static_cast<std::size_t>(node))->connection.Away();
}

bool RedisEngine::Quiet() const {
  for (std::size_t i = 0; i < impl_->nodes.size(); ++i) {
    const bool queued = impl_->core.HasOps(static_cast<NodeIndex>(i));
    if (queued || impl_->nodes[i]->connection.Busy()) return false;
  }
  return true;
}

}  // namespace fencepost::locking
