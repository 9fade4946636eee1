#include "locking/quorum_lock/lease.h"

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <utility>

#include "locking/base/check.h"
#include "locking/quorum_lock/lock_loop.h"

namespace fencepost::locking {
namespace {

constexpr int kExtendTimeouts = 2;
constexpr int kEndTimeouts = 5;

using States = std::vector<std::shared_ptr<LeaseState>>;

// What is asked of several leases together.
template <typename T>
struct Question {
  int timeouts;  // of a node: so long the answer is waited for
  // Nothing is left to ask for: an empty lease (null), or one that has ended.
  std::function<std::optional<T>(LeaseState*)> ended;
  std::function<void(LockLoop&, const LeaseState&, const Promise<T>&)> ask;
  std::function<T(const LeaseState&)> closed;  // the lock is gone
  std::function<T(const LeaseState&)> late;    // the nodes were too slow
};

// One command a QuorumLock, so that it travels together.
template <typename T>
std::vector<T> AskAll(const States& states, const Question<T>& question) {
  const Instant start = BootClock::now();
  std::vector<std::future<T>> asked;
  std::map<std::shared_ptr<Mailbox>,
           std::vector<std::pair<std::shared_ptr<LeaseState>, Promise<T>>>>
      together;
  for (const auto& state : states) {
    FENCEPOST_CHECK(!state || !state->mailbox->OnLoopThread(),
                    "a blocking call on a lease from a callback: " + state->name);
    const auto promise = std::make_shared<std::promise<T>>();
    asked.push_back(promise->get_future());
    if (auto ended = question.ended(state.get())) {
      promise->set_value(std::move(*ended));
    } else {
      together[state->mailbox].emplace_back(state, promise);
    }
  }
  for (const auto& [mailbox, all] : together) {
    const bool posted = mailbox->Post([all = all, ask = question.ask](LockLoop& loop) {
      for (const auto& [state, promise] : all) ask(loop, *state, promise);
    });
    if (posted) continue;
    for (const auto& [state, promise] : all) promise->set_value(question.closed(*state));
  }
  std::vector<T> answers;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Nanos limit = states[i] ? question.timeouts * states[i]->node_timeout : Nanos(0);
    const Nanos left = std::max(start + limit - BootClock::now(), Nanos(0));
    const bool in_time = asked[i].wait_for(left) == std::future_status::ready;
    answers.push_back(in_time ? asked[i].get() : question.late(*states[i]));
  }
  return answers;
}

// `end`: the leases end by it.
std::vector<Settled> SettleAll(
    const States& states, bool end, const char* late,
    std::function<void(LockLoop&, const LeaseState&, const Promise<Settled>&)> ask) {
  const auto ended = [end](LeaseState* state) -> std::optional<Settled> {
    if (state == nullptr) return tl::unexpected(Error{"ended", "an empty lease", "", ""});
    if (!(end ? state->ended.exchange(true) : state->ended.load())) return std::nullopt;
    return tl::unexpected(state->Why());
  };
  return AskAll<Settled>(
      states,
      {.timeouts = end ? kEndTimeouts : kExtendTimeouts,
       .ended = ended,
       .ask = std::move(ask),
       .closed = [](const LeaseState& lease) { return tl::unexpected(lease.Why()); },
       .late =
           [late](const LeaseState& lease) {
             return tl::unexpected(Error{"no_quorum", late, lease.name, "see the lock nodes"});
           }});
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

std::vector<std::shared_ptr<LeaseState>> Lease::StatesOf(std::span<Lease> leases) {
  States states;
  for (const Lease& lease : leases) states.push_back(lease.state_);
  return states;
}

std::vector<Settled> Lease::ExtendAll(std::span<Lease> leases) {
  return SettleAll(StatesOf(leases), false, "no quorum of nodes has extended the lease in time",
                   [](LockLoop& loop, const LeaseState& lease, const Promise<Settled>& promise) {
                     loop.Extend(lease, promise);
                   });
}

std::vector<Settled> Lease::DoneAll(std::span<Lease> leases, ContentCrc crc, Millis remember) {
  return SettleAll(StatesOf(leases), true, "no quorum of nodes has confirmed the mark in time",
                   [=](LockLoop& loop, const LeaseState& lease, const Promise<Settled>& promise) {
                     loop.Done(lease, crc, remember, promise);
                   });
}

std::vector<ReleaseOutcome> Lease::ReleaseAll(std::span<Lease> leases) {
  const auto ended = [](LeaseState* state) -> std::optional<ReleaseOutcome> {
    if (state == nullptr) return ReleaseOutcome::kUnknown;
    state->ended = true;
    return std::nullopt;
  };
  const auto ask = [](LockLoop& loop, const LeaseState& lease,
                      const Promise<ReleaseOutcome>& promise) {
    loop.Release(lease, [promise](ReleaseOutcome outcome) { promise->set_value(outcome); });
  };
  return AskAll<ReleaseOutcome>(
      StatesOf(leases), {.timeouts = kEndTimeouts,
                         .ended = ended,
                         .ask = ask,
                         .closed = [](const LeaseState& lease) { return lease.Outcome(); },
                         .late = [](const LeaseState&) { return ReleaseOutcome::kUnknown; }});
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
