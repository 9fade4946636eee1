// LockLoop: its life, and what the core says.
#include "locking/quorum_lock/lock_loop.h"

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/base/random.h"

namespace fencepost::locking {
namespace {

Error LostError(const std::string& name, LossReason reason) {
  const char* what = "the lease was lost: its time ran out before it could be extended";
  if (reason == LossReason::kStolen) what = "the lease was lost: others hold the name";
  if (reason == LossReason::kNodeWiped) what = "the lease was lost: lock nodes have forgotten it";
  if (reason == LossReason::kClock) what = "the lease was lost: the clocks disagree";
  return {"lost", what, name, ""};
}

Error DoneError(const std::string& name, const LockEvent& event) {
  return {"done",
          fmt::format("marked done by token {}{}", event.token.value(),
                      event.crc == 0 ? "" : fmt::format(" (content crc {:016x})", event.crc)),
          name, ""};
}

}  // namespace

Error CancelledError(const std::string& name) {
  return {"cancelled", "the acquire was cancelled", name, ""};
}

Error ClosedError(const std::string& name) {
  return {"closed", "the QuorumLock is closed", name, ""};
}

LockLoop::LockLoop(std::shared_ptr<Mailbox> mailbox, const QuorumLock::Options& options)
    : mailbox_(std::move(mailbox)),
      options_(options),
      core_(static_cast<int>(options_.redis.nodes.size()), options_.lock, options_.creation,
            RandomBits, options_.observer),
      engine_(io_, core_, options_.redis, options_.lock, options_.observer, [this] { OnStep(); }) {
  mailbox_->Open([this] { asio::post(io_, [this] { DrainMailbox(); }); });
}

LockLoop::~LockLoop() { mailbox_->Close(); }

void LockLoop::Run() {
  mailbox_->SetLoopThread(std::this_thread::get_id());
  const auto work = asio::make_work_guard(io_);
  engine_.Start();
  while (!stopping_) io_.run_one();
  Close();
}

// All waiting ends, leases are lost to their users and given back to the nodes.
void LockLoop::Close() {
  const auto commands = mailbox_->Close();
  OnStep();
  for (const auto& command : commands) command(*this);
  const Now now = ReadClocks();
  std::vector<std::pair<std::shared_ptr<AcquireGroup>, std::size_t>> waiting;
  for (auto& [cookie, entry] : entries_) {
    if (entry.group) {
      core_.Cancel(entry.lock, now);
      waiting.emplace_back(entry.group, entry.index);
    } else if (!entry.ending) {
      Lose(entry, ClosedError(entry.lease->name), ReleaseOutcome::kUnknown);
      entry.ending = true;
      core_.Release(entry.lock, now);
    }
  }
  std::erase_if(entries_, [](const auto& at) { return at.second.group != nullptr; });
  for (const auto& [group, index] : waiting) {
    Decide(group, index, tl::unexpected(ClosedError(group->names[index])));
  }
  for (const auto& promise : std::exchange(ready_, {})) {
    promise->set_value(tl::unexpected(ClosedError("")));
  }
  engine_.Kick();
  const Instant deadline = BootClock::now() + options_.lock.node_timeout;
  while (!engine_.Quiet() && BootClock::now() < deadline) {
    io_.run_one_for(deadline - BootClock::now());
  }
  OnStep();
  for (auto& [cookie, entry] : entries_) {
    if (entry.marking) entry.marking->set_value(tl::unexpected(ClosedError(entry.lease->name)));
    for (const auto& callback : entry.releasing) callback(ReleaseOutcome::kUnknown);
  }
  entries_.clear();
}

void LockLoop::DrainMailbox() {
  // What the nodes said comes before what users ask, so that entries_ and the core agree.
  OnStep();
  for (const auto& command : mailbox_->Take()) command(*this);
  engine_.Kick();
}

// --- what the core says ------------------------------------------------------------------------

void LockLoop::OnStep() {
  const Now now = ReadClocks();
  while (!core_.events().empty()) {
    events_.clear();
    events_.swap(core_.events());
    for (const LockEvent& event : events_) OnEvent(event, now);
  }
  CheckExtensions(now);
  if (ready_.empty() || !core_.Available()) return;
  for (const auto& promise : std::exchange(ready_, {})) promise->set_value({});
}

void LockLoop::OnEvent(const LockEvent& event, Now now) {
  const auto at = entries_.find(event.cookie);
  if (at == entries_.end()) return;  // cancelled
  Entry& entry = at->second;
  switch (event.kind) {
    case LockEvent::Kind::kLeased:
      return OnLeased(at, event, now);
    case LockEvent::Kind::kRoundFailed:
      return OnRoundFailed(at, event, now);
    case LockEvent::Kind::kCompleted:
      return OnMarked(at, event);
    case LockEvent::Kind::kReleased:
      return OnReleased(at, event);
    case LockEvent::Kind::kDone:
      if (entry.group) return Fail(at, DoneError(entry.Name(), event));
      Lose(entry, DoneError(entry.Name(), event), ReleaseOutcome::kExpired);
      return Erase(at);
    case LockEvent::Kind::kGaveUp:
      return Fail(at, GaveUp(entry, event.reason));
    case LockEvent::Kind::kLost:
      Lose(entry, LostError(entry.Name(), event.loss),
           event.loss == LossReason::kStolen ? ReleaseOutcome::kStolen : ReleaseOutcome::kExpired);
      return Erase(at);
    case LockEvent::Kind::kAnswered:  // the library asks no questions
      return;
  }
}

void LockLoop::OnLeased(Entries::iterator at, const LockEvent& event, Now now) {
  Entry& entry = at->second;
  if (entry.group->options.cancel.stop_requested()) {
    // Between the grant and its being told: the caller has turned away from it.
    core_.Cancel(event.lock, now);
    return Fail(at, CancelledError(entry.Name()));
  }
  auto state = std::make_shared<LeaseState>();
  state->mailbox = mailbox_;
  state->cookie = event.cookie;
  state->name = entry.Name();
  state->token = event.token;
  state->node_timeout = options_.lock.node_timeout;
  state->why.where = state->name;
  const Instant until = core_.ValidUntil(event.lock);
  state->valid_until = until.time_since_epoch().count();
  entry.lease = state;
  core_.SetPhase(event.lock, Phase::kHandling);
  if (until != Instant::min()) ScheduleCheck(at->first, entry, NextExtension(entry, until));
  const auto group = std::exchange(entry.group, nullptr);
  Decide(group, entry.index, Lease(std::move(state)));
}

// A ttl that the store does not allow is refused every time: waiting does not help.
void LockLoop::OnRoundFailed(Entries::iterator at, const LockEvent& event, Now now) {
  const Entry& entry = at->second;
  if (event.reason != WaitReason::kRefused || entry.ttl <= core_.store().max_ttl()) return;
  core_.Cancel(event.lock, now);
  Fail(at, GaveUp(entry, event.reason));
}

void LockLoop::OnMarked(Entries::iterator at, const LockEvent& event) {
  const auto promise = std::exchange(at->second.marking, nullptr);
  const std::string name = at->second.lease->name;
  Erase(at);
  if (event.majority) {
    promise->set_value({});
  } else {
    Error error{"no_quorum", "too few lock nodes have confirmed the mark", name, ""};
    promise->set_value(tl::unexpected(std::move(error)));
  }
}

void LockLoop::OnReleased(Entries::iterator at, const LockEvent& event) {
  const auto callbacks = std::exchange(at->second.releasing, {});
  {
    const std::lock_guard guard(at->second.lease->mutex);
    at->second.lease->outcome = event.outcome;
  }
  Erase(at);
  for (const auto& callback : callbacks) callback(event.outcome);
}

// --- parts -------------------------------------------------------------------------------------

void LockLoop::Lose(Entry& entry, const Error& why, ReleaseOutcome outcome) {
  LeaseState& lease = *entry.lease;
  {
    const std::lock_guard guard(lease.mutex);
    lease.why = why;
    lease.outcome = outcome;
  }
  const bool by_user = lease.ended.exchange(true);
  for (const auto& one : std::exchange(entry.extending, {})) one->set_value(tl::unexpected(why));
  lease.lost.request_stop();
  const auto on_lost = std::exchange(entry.on_lost, nullptr);
  if (on_lost && !by_user) on_lost(why);
}

void LockLoop::Decide(const std::shared_ptr<AcquireGroup>& group, std::size_t index,
                      QuorumLock::Result result) {
  group->results[index] = std::move(result);
  if (--group->undecided > 0) return;
  group->on_cancel.reset();
  group->on_all(std::move(group->results));
}

void LockLoop::Fail(Entries::iterator at, Error error) {
  const auto group = at->second.group;
  const std::size_t index = at->second.index;
  Erase(at);
  Decide(group, index, tl::unexpected(std::move(error)));
}

LockLoop::Entries::iterator LockLoop::Held(const LeaseState& lease,
                                           std::promise<Settled>& promise) {
  const auto at = entries_.find(lease.cookie);
  if (at != entries_.end() && !at->second.ending) return at;
  promise.set_value(tl::unexpected(lease.Why()));
  return entries_.end();
}

// Every pending call is answered with how it ended.
void LockLoop::Erase(Entries::iterator at) {
  ScheduleCheck(at->first, at->second, Instant::max());
  const Entry entry = std::move(at->second);
  entries_.erase(at);
  if (!entry.lease) return;
  for (const auto& one : entry.extending) one->set_value(tl::unexpected(entry.lease->Why()));
  if (entry.marking) entry.marking->set_value(tl::unexpected(entry.lease->Why()));
  for (const auto& callback : entry.releasing) callback(entry.lease->Outcome());
}

void LockLoop::ScheduleCheck(std::uint64_t cookie, Entry& entry, Instant at) {
  if (at == entry.check_at) return;
  checks_.erase({entry.check_at, cookie});
  entry.check_at = at;
  if (at != Instant::max()) checks_.emplace(at, cookie);
}

// The core extends without an event: an extension shows in valid_until.
void LockLoop::CheckExtensions(Now now) {
  for (auto look = checks_.begin(); look != checks_.end() && look->first <= now.boot;) {
    const std::uint64_t cookie = look->second;
    ++look;  // ScheduleCheck removes the one behind it
    Entry& entry = entries_.at(cookie);
    const Instant until = core_.ValidUntil(entry.lock);
    const Instant::rep count = until.time_since_epoch().count();
    if (until == Instant::min() || count == entry.lease->valid_until) continue;
    entry.lease->valid_until = count;
    ScheduleCheck(cookie, entry, NextExtension(entry, until));
    for (const auto& one : std::exchange(entry.extending, {})) one->set_value({});
  }
}

Instant LockLoop::NextExtension(const Entry& entry, Instant valid_until) const {
  if (!entry.watchdog) return Instant::max();
  const Instant asked = valid_until - options_.lock.Validity(entry.ttl);
  return asked + entry.ttl / 3;
}

Error LockLoop::GaveUp(const Entry& entry, WaitReason reason) const {
  const std::string& name = entry.Name();
  switch (reason) {
    case WaitReason::kContended:
    case WaitReason::kStale:
      return {"contended", "another holds the name", name, ""};
    case WaitReason::kRefused:
      if (entry.ttl > core_.store().max_ttl()) {
        return {"refused",
                fmt::format("a ttl of {} ms is above the store's max_ttl of {} ms",
                            entry.ttl.count(), core_.store().max_ttl().count()),
                name, "ask for less; the watchdog extends"};
      }
      return {"clock", "a majority of the lock nodes refuses this host's clock", name,
              "fix the clock (NTP) of this host or of the nodes"};
    case WaitReason::kTooLate:
      return {"too_late", "a quorum of lock nodes granted it, but with less than min_validity left",
              name, "see why the nodes answer slowly, or lower min_validity"};
    case WaitReason::kForeign:
      return {"foreign", fmt::format("the key {} holds something that is no lock", Key(name)), name,
              "DEL it if nobody needs it"};
    case WaitReason::kUnavailable:
    case WaitReason::kTimeout:
      break;
  }
  if (core_.Available()) {
    return {"no_quorum", "too few lock nodes answered in time", name, "see the lock nodes"};
  }
  Error why = WhyNotReady();
  why.code = "no_quorum";
  why.where = why.where.empty() ? name : fmt::format("{}: {}", name, why.where);
  return why;
}

std::string LockLoop::Key(const std::string& name) const {
  return fmt::format("fencepost:{{{}}}:{}", options_.name_space, name);
}

}  // namespace fencepost::locking
