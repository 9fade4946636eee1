#include "locking/recipes/election.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "locking/base/check.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;

constexpr Millis kStandFor = 2s;      // one Acquire: how late a change of on_waiting is told
constexpr Millis kTryAgainIn = 1s;    // after an error that comes without waiting
constexpr Millis kLookEvery = 100ms;  // a timer's clock stops in suspend, BootClock does not

Error Why(const char* code, const char* what, const std::string& name) {
  return {code, what, name, ""};
}

}  // namespace

struct Election::Impl {
  // A term and how it ends. Shared by both threads.
  struct Reign {
    explicit Reign(Lease granted) : lease(std::move(granted)) {}
    Lease lease;
    std::stop_source deposed;
    Error why{};  // set before `deposed` stops
    [[nodiscard]] Term AsTerm() const { return {lease.token(), deposed.get_token()}; }
  };

  Impl(QuorumLock& quorum_lock, std::string its_name, ElectionOptions its_options)
      : lock(quorum_lock), name(std::move(its_name)), options(std::move(its_options)) {
    options.acquire.wait = kStandFor;
    options.acquire.tries = 0;
    options.acquire.watchdog = true;
    options.acquire.cancel = stopping.get_token();
    Millis& least = options.acquire.min_validity;
    least = std::max(lock.lock_options().MinValidity(least), options.depose_before);
  }

  QuorumLock& lock;
  const std::string name;
  ElectionOptions options;
  std::stop_source stopping;
  std::mutex starting;    // Start and Stop, one at a time
  std::thread callbacks;  // campaigns, calls back, releases
  std::thread watcher;    // tells when the term must end

  std::mutex mutex;
  std::condition_variable_any changed;
  bool started = false;
  std::shared_ptr<Reign> reign;  // from just before on_elected to just before on_deposed
  bool resigned = false;         // of this reign
  bool lost = false;             // its lease's stop_token has stopped
  Millis pause{0};
  std::string waiting_code;  // what on_waiting was told last; the callbacks' thread only

  [[nodiscard]] Millis Ttl() const {
    return options.acquire.ttl > Millis(0) ? options.acquire.ttl : lock.lock_options().ttl;
  }

  // --- the callbacks' thread ---------------------------------------------------------------------
  void Campaign() {
    while (!stopping.stop_requested()) {
      auto lease = lock.Acquire(name, options.acquire);
      if (lease) {
        TellWaiting({});
        Lead(std::move(*lease));
        continue;
      }
      const Error& error = lease.error();
      if (error.code == "cancelled") continue;
      const bool contended = error.code == "contended";
      TellWaiting(contended ? Error{} : error);
      if (error.code == "closed") return;
      if (!contended) Pause(kTryAgainIn);
    }
  }

  void Lead(Lease lease) {
    // Deposed before it began: too little is left of a lease that was long in coming.
    // (valid_until is Instant::min() when it is lost: nothing may be taken from that.)
    if (lease.valid_until() <= BootClock::now() + options.depose_before) return;
    const auto mine = std::make_shared<Reign>(std::move(lease));
    const std::stop_callback on_loss(mine->lease.stop_token(), [this] {
      {
        const std::lock_guard guard(mutex);
        lost = true;
      }
      changed.notify_all();
    });
    {
      const std::lock_guard guard(mutex);
      if (stopping.stop_requested()) return;  // the watcher may be gone
      reign = mine;
      resigned = false;
      lost = mine->lease.stop_token().stop_requested();
    }
    changed.notify_all();
    if (options.on_elected) options.on_elected(mine->AsTerm());
    bool pausing = false;
    {
      std::unique_lock guard(mutex);
      changed.wait(guard, [&] { return mine->deposed.stop_requested(); });
      reign = nullptr;
      pausing = resigned;
    }
    if (options.on_deposed) options.on_deposed(mine->AsTerm(), mine->why);
    mine->lease.Release();
    if (pausing) Pause(pause);
  }

  void Pause(Millis length) {
    std::unique_lock guard(mutex);
    const Millis most = std::min(length, kLongestWait);
    changed.wait_for(guard, stopping.get_token(), most, [] { return false; });
  }

  void TellWaiting(const Error& error) {
    if (error.code == waiting_code) return;
    waiting_code = error.code;
    if (options.on_waiting) options.on_waiting(error);
  }

  // --- the watcher's thread ----------------------------------------------------------------------
  void Watch() {
    std::unique_lock guard(mutex);
    while (true) {
      const auto mine = reign;
      if (!mine || mine->deposed.stop_requested()) {
        if (stopping.stop_requested()) return;
        changed.wait(guard, stopping.get_token(),
                     [&] { return reign != nullptr && !reign->deposed.stop_requested(); });
        continue;
      }
      const Instant due = std::max(mine->lease.valid_until(), Instant()) - options.depose_before;
      const Nanos left = due - BootClock::now();
      if (lost || resigned || stopping.stop_requested() || left <= Nanos(0)) {
        mine->why = WhyEnded(*mine);
        guard.unlock();  // its stop callbacks are the user's
        mine->deposed.request_stop();
        guard.lock();
        changed.notify_all();
        continue;
      }
      changed.wait_for(guard, stopping.get_token(), std::min<Nanos>(left, kLookEvery),
                       [&] { return lost || resigned; });
    }
  }

  [[nodiscard]] Error WhyEnded(Reign& mine) const {
    if (lost) {
      auto why = mine.lease.Extend();  // of a lease that has ended: asks nobody
      return why ? Why("lost", "the lease was lost", name) : std::move(why.error());
    }
    if (resigned) return Why("resigned", "the leader has resigned", name);
    if (stopping.stop_requested()) return Why("stopped", "the election was stopped", name);
    return Why("lost", "the lease could not be extended in time", name);
  }
};

Election::Election(QuorumLock& lock, std::string name, ElectionOptions options)
    : impl_(std::make_unique<Impl>(lock, std::move(name), std::move(options))) {}

Election::~Election() { Stop(); }

tl::expected<void, Error> Election::Start() {
  const std::lock_guard one_at_a_time(impl_->starting);
  const std::lock_guard guard(impl_->mutex);
  const auto bad = [&](std::string what, std::string hint) {
    return tl::unexpected(Error{"bad_options", std::move(what), impl_->name, std::move(hint)});
  };
  if (impl_->started || impl_->stopping.stop_requested()) {
    return bad("the election was started or stopped before", "make another one");
  }
  if (impl_->options.depose_before < Millis(0) ||
      impl_->options.depose_before * 3 >= impl_->Ttl() * 2) {
    return bad(
        "depose_before leaves no time to extend the lease",
        "less than two thirds of the ttl of " + std::to_string(impl_->Ttl().count()) + " ms");
  }
  impl_->started = true;
  try {
    impl_->watcher = std::thread([impl = impl_.get()] { impl->Watch(); });
    impl_->callbacks = std::thread([impl = impl_.get()] { impl->Campaign(); });
  } catch (const std::system_error& e) {
    impl_->stopping.request_stop();
    return tl::unexpected(Error{"no_thread", e.what(), impl_->name, "raise the limit on threads"});
  }
  return {};
}

void Election::Resign(Millis pause) {
  {
    const std::lock_guard guard(impl_->mutex);
    if (!impl_->reign) return;
    impl_->resigned = true;
    impl_->pause = std::max(pause, Millis(0));
  }
  impl_->changed.notify_all();
}

void Election::Stop() {
  const auto self = std::this_thread::get_id();
  FENCEPOST_CHECK(self != impl_->callbacks.get_id() && self != impl_->watcher.get_id(),
                  "an election was stopped from its own callback");
  impl_->stopping.request_stop();
  const std::lock_guard one_at_a_time(impl_->starting);
  if (impl_->callbacks.joinable()) impl_->callbacks.join();
  if (impl_->watcher.joinable()) impl_->watcher.join();
}

bool Election::IsLeader() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->reign && !impl_->reign->deposed.stop_requested() && impl_->reign->lease.valid();
}

std::optional<Term> Election::Current() const {
  const std::lock_guard guard(impl_->mutex);
  if (!impl_->reign) return std::nullopt;
  return impl_->reign->AsTerm();
}

}  // namespace fencepost::locking
