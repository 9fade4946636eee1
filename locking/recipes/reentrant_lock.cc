#include "locking/recipes/reentrant_lock.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "locking/recipes/budget.h"

namespace fencepost::locking {

// What the holds of one owner of one name share. Guarded by Impl::mutex: stage, holds, waits. The
// lease is written by the one that asks for it, in kAsking, and is only read in kHeld.
struct ReentrantHold::Shared {
  enum class Stage { kAsking, kHeld, kEnding, kOver };

  std::shared_ptr<ReentrantLock::Impl> impl;
  std::pair<std::string, std::string> key;  // name, owner
  bool waits = false;                       // kAsking: more than one round
  Stage stage = Stage::kAsking;
  int holds = 0;
  Lease lease;
};

struct ReentrantLock::Impl {
  using Shared = ReentrantHold::Shared;
  using Stage = Shared::Stage;

  explicit Impl(QuorumLock& quorum_lock) : lock(quorum_lock) {}

  QuorumLock& lock;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Shared>> owners;

  // One hold less. True when it was the last: the caller gives the lease back, then calls End.
  bool DropHold(Shared& shared) {
    const std::lock_guard guard(mutex);
    if (--shared.holds > 0) return false;
    shared.stage = Stage::kEnding;
    return true;
  }
  // The owner holds nothing more; waiters in this process may ask the nodes.
  void End(Shared& shared) {
    {
      const std::lock_guard guard(mutex);
      shared.stage = Stage::kOver;
      owners.erase(shared.key);
    }
    changed.notify_all();
  }
};

namespace {

Error Lost(const std::string& name) {
  return {"lost", "the lease of this owner was lost while it still has holds of the name", name,
          "end them first"};
}
Error Contended(const std::string& name) {
  return {"contended", "another thread of this owner is asking for the name", name, ""};
}
Error Cancelled(const std::string& name) {
  return {"cancelled", "the acquire was cancelled", name, ""};
}

}  // namespace

// --- a hold --------------------------------------------------------------------------------------

ReentrantHold::ReentrantHold(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

ReentrantHold& ReentrantHold::operator=(ReentrantHold&& other) noexcept {
  if (this == &other) return *this;
  ReentrantHold old(std::move(*this));
  shared_ = std::move(other.shared_);
  ended_ = other.ended_;
  outcome_ = other.outcome_;
  return *this;
}

ReentrantHold::~ReentrantHold() {
  if (!shared_ || ended_ || !shared_->impl->DropHold(*shared_)) return;
  // Runs when the nodes have answered; until then the owner cannot ask again.
  shared_->lease.ReleaseAsync([shared = shared_](ReleaseOutcome) { shared->impl->End(*shared); });
}

Token ReentrantHold::token() const { return shared_ ? shared_->lease.token() : Token(); }

bool ReentrantHold::valid() const { return BootClock::now() < valid_until(); }

Instant ReentrantHold::valid_until() const {
  return shared_ && !ended_ ? shared_->lease.valid_until() : Instant::min();
}

std::stop_token ReentrantHold::stop_token() const {
  return shared_ ? shared_->lease.stop_token() : Lease().stop_token();
}

int ReentrantHold::count() const {
  if (!shared_ || ended_) return 0;
  const std::lock_guard guard(shared_->impl->mutex);
  return shared_->holds;
}

tl::expected<void, Error> ReentrantHold::Extend() {
  if (!shared_) return tl::unexpected(Error{"ended", "an empty hold", "", ""});
  if (ended_) {
    return tl::unexpected(Error{"ended", "the hold was released before", shared_->key.first, ""});
  }
  return shared_->lease.Extend();
}

ReleaseOutcome ReentrantHold::Release() {
  if (!shared_ || ended_) return outcome_;
  ended_ = true;
  const bool lost = shared_->lease.stop_token().stop_requested();
  if (!shared_->impl->DropHold(*shared_)) {
    outcome_ = lost ? ReleaseOutcome::kExpired : ReleaseOutcome::kReleased;
    return outcome_;
  }
  outcome_ = shared_->lease.Release();
  shared_->impl->End(*shared_);
  return outcome_;
}

// --- the lock ------------------------------------------------------------------------------------

ReentrantLock::ReentrantLock(QuorumLock& lock) : impl_(std::make_shared<Impl>(lock)) {}

ReentrantLock::~ReentrantLock() = default;

ReentrantLock::Result ReentrantLock::Acquire(const std::string& name, const std::string& owner,
                                             const AcquireOptions& options) {
  using Stage = ReentrantHold::Shared::Stage;
  impl_->lock.CheckMayBlock();
  const Budget budget(options);
  const auto shared = std::make_shared<ReentrantHold::Shared>();
  shared->impl = impl_;
  shared->key = {name, owner};
  shared->waits = budget.waits();
  {
    std::unique_lock guard(impl_->mutex);
    while (true) {
      const auto [at, first] = impl_->owners.try_emplace(shared->key, shared);
      if (first) break;
      const auto held = at->second;
      if (held->stage == Stage::kHeld) {
        if (!held->lease.valid()) return tl::unexpected(Lost(name));
        ++held->holds;
        return ReentrantHold(held);
      }
      // A single round is awaited by those who do not wait, too: it is no longer than their own.
      const bool long_try = held->stage == Stage::kAsking && held->waits;
      if (!budget.waits() && long_try) return tl::unexpected(Contended(name));
      const auto until = budget.waits() ? budget.End() : Budget::kNever;
      const Stage seen = held->stage;
      const bool moved = impl_->changed.wait_until(guard, options.cancel, until,
                                                   [&] { return held->stage != seen; });
      if (options.cancel.stop_requested()) return tl::unexpected(Cancelled(name));
      if (!moved) return tl::unexpected(Contended(name));
    }
  }
  AcquireOptions rest = options;
  rest.wait = budget.Left();
  auto lease = impl_->lock.Acquire(name, rest);
  if (!lease) {
    impl_->End(*shared);
    return tl::unexpected(std::move(lease.error()));
  }
  {
    const std::lock_guard guard(impl_->mutex);
    shared->lease = std::move(*lease);
    shared->stage = Stage::kHeld;
    shared->holds = 1;
  }
  impl_->changed.notify_all();
  return ReentrantHold(shared);
}

}  // namespace fencepost::locking
