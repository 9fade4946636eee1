// LockLoop: what users ask for.
#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "locking/quorum_lock/lock_loop.h"

namespace fencepost::locking {
namespace {

constexpr std::size_t kMaxName = 512;

Error Refused(const std::string& name, std::string what, std::string hint) {
  return {"refused", std::move(what), name.substr(0, 64), std::move(hint)};
}

}  // namespace

void LockLoop::Acquire(const std::shared_ptr<AcquireGroup>& group) {
  const Now now = ReadClocks();
  const std::size_t count = group->names.size();
  group->undecided = count;
  group->cookies.assign(count, 0);
  group->results.reserve(count);
  for (const std::string& name : group->names) {
    group->results.emplace_back(tl::unexpected(ClosedError(name)));
  }
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = group->names[i];
    if (!seen.insert(name).second) {
      Decide(group, i,
             tl::unexpected(Refused(name, "the name is listed twice", "list each name once")));
    } else if (stopping_) {
      Decide(group, i, tl::unexpected(ClosedError(name)));
    } else {
      Begin(group, i, now);
    }
  }
  const std::stop_token& cancel = group->options.cancel;
  if (group->undecided == 0 || !cancel.stop_possible()) return;
  group->on_cancel.emplace(cancel, [mailbox = mailbox_, watch = std::weak_ptr(group)] {
    if (auto cancelled = watch.lock()) {
      // Not taken only when the loop closes, which ends the group too.
      [[maybe_unused]] const bool posted =
          mailbox->Post([cancelled](LockLoop& loop) { loop.Cancel(cancelled); });
    }
  });
}

std::optional<Error> LockLoop::ProblemOf(const std::string& name,
                                         const AcquireOptions& options) const {
  if (name.empty() || name.size() > kMaxName) {
    return Refused(name, fmt::format("the name has {} bytes", name.size()),
                   "a name has 1 to 512 bytes");
  }
  const LockOptions& lock = options_.lock;
  const Millis ttl = options.ttl == Millis(0) ? lock.ttl : options.ttl;
  const Millis least = options.min_validity < Millis(0) ? lock.min_validity : options.min_validity;
  if (ttl <= Millis(0) || ttl > kMaxTtl || lock.Validity(ttl) <= least) {
    return Refused(name, fmt::format("ttl of {} ms is out of range", ttl.count()),
                   fmt::format("more than min_validity ({} ms) and the drift, at most the store's "
                               "max_ttl",
                               least.count()));
  }
  if (options.tries < 0) {
    return Refused(name, fmt::format("{} tries cannot be made", options.tries),
                   "tries is at least 1, or 0 for no limit of its own");
  }
  const DelayPolicy& delay = options.delay;
  if (!(delay.multiplier >= 1.0) || delay.first < Millis(0) || delay.most <= Millis(0)) {
    return Refused(name,
                   fmt::format("a delay of {} ms, growing {}-fold up to {} ms cannot be kept",
                               delay.first.count(), delay.multiplier, delay.most.count()),
                   "first is not negative, multiplier at least 1, most above 0");
  }
  return std::nullopt;
}

void LockLoop::Begin(const std::shared_ptr<AcquireGroup>& group, std::size_t index, Now now) {
  const std::string& name = group->names[index];
  const AcquireOptions& options = group->options;
  if (auto problem = ProblemOf(name, options))
    return Decide(group, index, tl::unexpected(std::move(*problem)));
  if (options.cancel.stop_requested())
    return Decide(group, index, tl::unexpected(CancelledError(name)));
  const bool for_ever = options.wait > kLongestWait;
  const std::uint64_t cookie = ++last_cookie_;
  group->cookies[index] = cookie;
  Entry& entry = entries_[cookie];
  entry.ttl = options.ttl == Millis(0) ? options_.lock.ttl : options.ttl;
  entry.watchdog = options.watchdog;
  entry.on_lost = options.on_lost;
  entry.group = group;
  entry.index = index;
  const std::string key = Key(name);
  AcquireSpec spec;
  spec.name = key;
  spec.cookie = cookie;
  spec.wait = for_ever ? Millis::max() : std::max(options.wait, Millis(0));
  spec.ttl = entry.ttl;
  spec.watchdog = options.watchdog;
  spec.tries = options.tries;
  spec.delay = options.delay;
  spec.min_validity = options.min_validity;
  entry.lock = core_.Acquire(spec, now);
}

// Ends what is not decided yet. A lease that was granted is its user's.
void LockLoop::Cancel(const std::shared_ptr<AcquireGroup>& group) {
  const Now now = ReadClocks();
  for (std::size_t i = 0; i < group->cookies.size(); ++i) {
    const auto at = entries_.find(group->cookies[i]);
    if (at == entries_.end() || !at->second.group) continue;
    core_.Cancel(at->second.lock, now);
    Fail(at, CancelledError(group->names[i]));
  }
}

void LockLoop::Extend(const LeaseState& lease, Promise<Settled> promise) {
  const auto at = Held(lease, *promise);
  if (at == entries_.end()) return;
  const Now now = ReadClocks();
  at->second.extending.push_back(std::move(promise));
  ScheduleCheck(at->first, at->second, std::min(now.boot, at->second.check_at));
  core_.ExtendNow(at->second.lock, now);
}

void LockLoop::Done(const LeaseState& lease, ContentCrc crc, Millis remember,
                    Promise<Settled> promise) {
  const auto at = Held(lease, *promise);
  if (at == entries_.end()) return;
  at->second.ending = true;
  at->second.marking = std::move(promise);
  ScheduleCheck(at->first, at->second, Instant::max());
  const Millis kept = remember > Millis(0) ? remember : options_.lock.remember_done;
  core_.Done(at->second.lock, crc, kept, ReadClocks());
}

void LockLoop::Release(const LeaseState& lease,
                       const std::function<void(ReleaseOutcome)>& callback) {
  const auto at = entries_.find(lease.cookie);
  if (at == entries_.end() || at->second.marking) {
    if (callback) callback(lease.Outcome());
    return;
  }
  if (callback) at->second.releasing.push_back(callback);
  if (std::exchange(at->second.ending, true)) return;
  ScheduleCheck(at->first, at->second, Instant::max());
  core_.Release(at->second.lock, ReadClocks());
}

void LockLoop::AwaitReady(Promise<Settled> promise) {
  if (core_.Available()) {
    promise->set_value({});
  } else if (stopping_) {
    promise->set_value(tl::unexpected(ClosedError("")));
  } else {
    std::erase_if(ready_, [](const auto& one) { return one.use_count() == 1; });  // gave up
    ready_.push_back(std::move(promise));
  }
}

const std::string& LockLoop::StoreId() {
  if (core_.Available()) store_id_ = core_.store().store_id();
  return store_id_;
}

Error LockLoop::WhyNotReady() const {
  const Now now = ReadClocks();
  auto of_store = core_.store().Problem();
  const std::string line = of_store ? of_store->Line() : "";
  bool quarantined = false;
  std::string nodes;
  for (std::size_t i = 0; i < options_.redis.nodes.size(); ++i) {
    const std::string address = RedactedAddress(options_.redis.nodes[i]);
    const NodeStatus status = core_.store().Status(static_cast<NodeIndex>(i), now);
    // The store knows its nodes by letter; the user's list names them by address.
    if (of_store && status.problem == line) of_store->where += fmt::format(" ({})", address);
    std::string problem = status.problem;
    if (!status.connected) {
      const std::string& away = engine_.Away(static_cast<int>(i)).detail;
      problem = away.empty() ? "not connected yet" : "the lock node is unavailable: " + away;
    } else if (status.quarantined) {
      problem = fmt::format("in quarantine for {} ms more", status.quarantine_left.count());
      quarantined = true;
    }
    if (problem.empty()) continue;
    nodes += fmt::format("{}{}: {}", nodes.empty() ? "" : ", ", address, problem);
  }
  if (of_store) return *of_store;
  return {"no_quorum", "no quorum of lock nodes can be used: " + nodes, "",
          quarantined
              ? "a node that is new, restarted or wiped counts when its quarantine is over; "
                "`fencepost locks status` shows every node"
              : "`fencepost locks status` shows every node"};
}

}  // namespace fencepost::locking
