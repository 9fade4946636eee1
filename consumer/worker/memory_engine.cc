#include "consumer/worker/memory_engine.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include <asio/post.hpp>

namespace fencepost::consumer {
namespace {

constexpr locking::Millis kLongestWait{250};  // Asio's timers stop while the machine is suspended

}  // namespace

MemoryEngine::MemoryEngine(asio::io_context& io, locking::LockCore& core,
                           const locking::LockOptions& options, std::function<void()> on_step)
    : io_(io), core_(core), on_step_(std::move(on_step)), node_(0, 1, options), timer_(io) {}

void MemoryEngine::Start() {
  Connect(locking::ReadClocks());
  on_step_();
  Kick();
}

void MemoryEngine::Connect(const locking::Now& now) {
  core_.store().OnConnected(0, node_.Info(now), now);
  core_.OnTime(now);
}

void MemoryEngine::Kick() {
  if (std::exchange(kicked_, true)) return;
  asio::post(io_, [this] { Pass(); });
}

void MemoryEngine::Pass() {
  const locking::Now now = locking::ReadClocks();
  const bool due = core_.NextTime() <= now.boot;
  if (due) core_.OnTime(now);
  const bool probed = core_.store().TakeCommand(0).has_value();
  if (probed) Connect(now);
  std::vector<locking::Op> ops;
  if (core_.TakeBatch(0, ops) > 0) {
    std::vector<locking::Reply> replies;
    for (const locking::Op& op : ops) replies.push_back(node_.Answer(op, now.wall));
    core_.OnReplies(0, replies, now);
  }
  core_.watch_changes().clear();
  if (due || probed || !ops.empty() || !core_.events().empty()) on_step_();
  kicked_ = false;
  if (core_.HasOps(0) || !core_.events().empty()) return Kick();
  ArmTimer();
}

void MemoryEngine::ArmTimer() {
  const auto wait = core_.NextTime() - locking::BootClock::now();
  timer_.expires_after(std::clamp<locking::Nanos>(wait, locking::Nanos(0), kLongestWait));
  timer_.async_wait([this](std::error_code error) {
    if (!error) Kick();
  });
}

}  // namespace fencepost::consumer
