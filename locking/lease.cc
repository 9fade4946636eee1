#include "locking/lease.h"

#include <utility>

#include "locking/check.h"
#include "locking/lock_loop.h"

namespace fencepost::locking {
namespace {

constexpr int kExtendTimeouts = 2;
constexpr int kEndTimeouts = 5;

void CheckMayBlock(const LeaseState& state) {
  FENCEPOST_CHECK(!state.mailbox->OnLoopThread(),
                  "a blocking call on a lease from a callback: " + state.name);
}

Error Unconfirmed(const LeaseState& state, const char* what) {
  return {"no_quorum", what, state.name, "see the lock nodes"};
}

}  // namespace

Lease::Lease(std::shared_ptr<LeaseState> state) : state_(std::move(state)) {}

Lease::~Lease() { ReleaseAsync(); }

Lease::Lease(Lease&& other) noexcept : state_(std::move(other.state_)) {}

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

tl::expected<void, Error> Lease::Extend() {
  if (!state_) return tl::unexpected(Error{"ended", "an empty lease", "", ""});
  CheckMayBlock(*state_);
  if (state_->ended) return tl::unexpected(state_->Why());
  const auto waiter = std::make_shared<Waiter<Settled>>();
  const bool posted = state_->mailbox->Post(
      [state = state_, waiter](LockLoop& loop) { loop.Extend(*state, waiter); });
  if (!posted) return tl::unexpected(state_->Why());
  auto result = waiter->WaitFor(kExtendTimeouts * state_->node_timeout);
  if (result) return std::move(*result);
  return tl::unexpected(Unconfirmed(*state_, "no quorum of nodes has extended the lease in time"));
}

tl::expected<void, Error> Lease::Done(ContentCrc crc, Millis remember) {
  if (!state_) return tl::unexpected(Error{"ended", "an empty lease", "", ""});
  CheckMayBlock(*state_);
  if (state_->ended.exchange(true)) return tl::unexpected(state_->Why());
  const auto waiter = std::make_shared<Waiter<Settled>>();
  const bool posted =
      state_->mailbox->Post([state = state_, crc, remember, waiter](LockLoop& loop) {
        loop.Done(*state, crc, remember, waiter);
      });
  if (!posted) return tl::unexpected(state_->Why());
  auto result = waiter->WaitFor(kEndTimeouts * state_->node_timeout);
  if (result) return std::move(*result);
  return tl::unexpected(Unconfirmed(*state_, "no quorum of nodes has confirmed the mark in time"));
}

ReleaseOutcome Lease::Release() {
  if (!state_) return ReleaseOutcome::kUnknown;
  CheckMayBlock(*state_);
  state_->ended = true;
  const auto waiter = std::make_shared<Waiter<ReleaseOutcome>>();
  const bool posted = state_->mailbox->Post([state = state_, waiter](LockLoop& loop) {
    loop.Release(*state, [waiter](ReleaseOutcome outcome) { waiter->Set(outcome); });
  });
  if (!posted) return state_->Outcome();
  return waiter->WaitFor(kEndTimeouts * state_->node_timeout).value_or(ReleaseOutcome::kUnknown);
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
