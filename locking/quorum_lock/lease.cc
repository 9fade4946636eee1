#include "locking/quorum_lock/lease.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "locking/base/check.h"
#include "locking/quorum_lock/lock_loop.h"

namespace fencepost::locking {
namespace {

constexpr int kExtendTimeouts = 2;
constexpr int kEndTimeouts = 5;

void CheckMayBlock(const LeaseState& state) {
  FENCEPOST_CHECK(!state.mailbox->OnLoopThread(),
                  "a blocking call on a lease from a callback: " + state.name);
}

// What is asked of several leases together: one command a QuorumLock, so that it travels together.
template <typename T>
class Round {
 public:
  using AnswerWaiter = std::shared_ptr<Waiter<T>>;

  explicit Round(std::size_t size) : answers_(size), asked_(size) {}

  void Answer(std::size_t i, T answer) { answers_[i] = std::move(answer); }
  template <typename Question>
  void Ask(std::size_t i, const std::shared_ptr<LeaseState>& state, Question question) {
    const auto waiter = std::make_shared<Waiter<T>>();
    asked_[i] = {state, waiter};
    posts_[state->mailbox].push_back(
        [state, waiter, question](LockLoop& loop) { question(loop, *state, waiter); });
  }
  // `closed` and `late` answer for a lock that is gone and for nodes that were too slow.
  template <typename Closed, typename Late>
  std::vector<T> Wait(int timeouts, Closed closed, Late late) {
    const Instant start = BootClock::now();
    std::set<const Mailbox*> gone;
    for (auto& [mailbox, commands] : posts_) {
      const bool posted = mailbox->Post([commands = std::move(commands)](LockLoop& loop) {
        for (const Mailbox::Command& command : commands) command(loop);
      });
      if (!posted) gone.insert(mailbox.get());
    }
    std::vector<T> answers;
    answers.reserve(asked_.size());
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      const auto& [state, waiter] = asked_[i];
      if (answers_[i]) {
        answers.push_back(std::move(*answers_[i]));
      } else if (gone.contains(state->mailbox.get())) {
        answers.push_back(closed(*state));
      } else {
        const Nanos left = start + timeouts * state->node_timeout - BootClock::now();
        auto answer = waiter->WaitFor(std::max(left, Nanos(0)));
        answers.push_back(answer ? std::move(*answer) : T(late(*state)));
      }
    }
    return answers;
  }

 private:
  std::vector<std::optional<T>> answers_;
  std::vector<std::pair<std::shared_ptr<LeaseState>, AnswerWaiter>> asked_;
  std::map<std::shared_ptr<Mailbox>, std::vector<Mailbox::Command>> posts_;
};

// True where nothing is left to ask for: an empty lease, or one that has ended. `end`: it ends now.
bool AnswerEnded(Round<Settled>& round, std::size_t i, const std::shared_ptr<LeaseState>& state,
                 bool end) {
  if (!state) {
    round.Answer(i, tl::unexpected(Error{"ended", "an empty lease", "", ""}));
    return true;
  }
  CheckMayBlock(*state);
  if (!(end ? state->ended.exchange(true) : state->ended.load())) return false;
  round.Answer(i, tl::unexpected(state->Why()));
  return true;
}

std::vector<Settled> WaitSettled(Round<Settled>& round, int timeouts, const char* late) {
  return round.Wait(
      timeouts, [](const LeaseState& lease) { return tl::unexpected(lease.Why()); },
      [late](const LeaseState& lease) {
        return tl::unexpected(Error{"no_quorum", late, lease.name, "see the lock nodes"});
      });
}

}  // namespace

Lease::Lease(std::shared_ptr<LeaseState> state) : state_(std::move(state)) {}

Lease::~Lease() { ReleaseAsync(); }

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    ReleaseAsync();
    state_ = std::move(other.state_);
  }
  return *this;
}

Token Lease::token() const { return state_ ? state_->token : Token(); }

const std::string& Lease::name() const {
  static const std::string kNone;
  return state_ ? state_->name : kNone;
}

Instant Lease::valid_until() const {
  if (!state_ || state_->ended) return Instant::min();
  return Instant(Nanos(state_->valid_until));
}

bool Lease::valid() const { return BootClock::now() < valid_until(); }

std::stop_token Lease::stop_token() const {
  if (state_) return state_->lost.get_token();
  std::stop_source stopped;
  stopped.request_stop();
  return stopped.get_token();
}

tl::expected<void, Error> Lease::Extend() { return ExtendAll({this, 1}).front(); }

tl::expected<void, Error> Lease::Done(ContentCrc crc, Millis remember) {
  return DoneAll({this, 1}, crc, remember).front();
}

ReleaseOutcome Lease::Release() { return ReleaseAll({this, 1}).front(); }

std::vector<Settled> Lease::ExtendAll(std::span<Lease> leases) {
  Round<Settled> round(leases.size());
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const auto& state = leases[i].state_;
    if (AnswerEnded(round, i, state, false)) continue;
    round.Ask(i, state, [](LockLoop& loop, const LeaseState& lease, const auto& waiter) {
      loop.Extend(lease, waiter);
    });
  }
  return WaitSettled(round, kExtendTimeouts, "no quorum of nodes has extended the lease in time");
}

std::vector<Settled> Lease::DoneAll(std::span<Lease> leases, ContentCrc crc, Millis remember) {
  Round<Settled> round(leases.size());
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const auto& state = leases[i].state_;
    if (AnswerEnded(round, i, state, true)) continue;
    round.Ask(i, state, [=](LockLoop& loop, const LeaseState& lease, const auto& waiter) {
      loop.Done(lease, crc, remember, waiter);
    });
  }
  return WaitSettled(round, kEndTimeouts, "no quorum of nodes has confirmed the mark in time");
}

std::vector<ReleaseOutcome> Lease::ReleaseAll(std::span<Lease> leases) {
  Round<ReleaseOutcome> round(leases.size());
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const auto& state = leases[i].state_;
    if (!state) {
      round.Answer(i, ReleaseOutcome::kUnknown);
      continue;
    }
    CheckMayBlock(*state);
    state->ended = true;
    round.Ask(i, state, [](LockLoop& loop, const LeaseState& lease, const auto& waiter) {
      loop.Release(lease, [waiter](ReleaseOutcome outcome) { waiter->Set(outcome); });
    });
  }
  return round.Wait(
      kEndTimeouts, [](const LeaseState& lease) { return lease.Outcome(); },
      [](const LeaseState&) { return ReleaseOutcome::kUnknown; });
}

void Lease::ReleaseAsync(std::function<void(ReleaseOutcome)> callback) {
  if (!state_) {
    if (callback) callback(ReleaseOutcome::kUnknown);
    return;
  }
  if (state_->ended.exchange(true) && !callback) return;
  const bool posted = state_->mailbox->Post(
      [state = state_, callback](LockLoop& loop) { loop.Release(*state, callback); });
  if (!posted && callback) callback(state_->Outcome());
}

}  // namespace fencepost::locking
