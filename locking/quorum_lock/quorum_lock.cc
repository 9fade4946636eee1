#include "locking/quorum_lock/quorum_lock.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/quorum_lock/lock_loop.h"
#include "locking/redis/engine/access.h"

namespace fencepost::locking {
namespace {

constexpr std::size_t kMaxNamespace = 63;
constexpr double kMostDrift = 0.5;

Error Bad(std::string what, std::string hint) {
  return {"bad_options", std::move(what), "", std::move(hint)};
}

bool GoodNamespace(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNamespace &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

std::optional<Error> ProblemOfTimes(const LockOptions& lock) {
  const struct {
    const char* name;
    Millis value;
    Millis least;
    Millis most;
  } times[] = {{"node_timeout", lock.node_timeout, Millis(1), Millis::max()},
               {"min_validity", lock.min_validity, Millis(0), Millis::max()},
               {"max_skew", lock.max_skew, Millis(0), Millis::max()},
               {"remember_done", lock.remember_done, Millis(1), Millis::max()},
               {"max_ttl", lock.max_ttl, Millis(1), kMaxTtl}};
  for (const auto& time : times) {
    if (time.value >= time.least && time.value <= time.most) continue;
    const std::string most =
        time.most == Millis::max() ? "" : fmt::format(", at most {} ms", time.most.count());
    return Bad(fmt::format("{} of {} ms cannot be kept", time.name, time.value.count()),
               fmt::format("at least {} ms{}", time.least.count(), most));
  }
  return std::nullopt;
}

std::optional<Error> ProblemOf(const QuorumLock::Options& options) {
  if (auto problem = ProblemOf(options.redis)) return problem;
  if (auto problem = TlsProblemOf(options.redis)) return problem;
  if (!GoodNamespace(options.name_space)) {
    return Bad(fmt::format("the namespace '{}' cannot be used", options.name_space),
               "1 to 63 of a-z, 0-9 and -");
  }
  const LockOptions& lock = options.lock;
  if (auto problem = ProblemOfTimes(lock)) return problem;
  if (!(lock.drift_factor >= 0.0 && lock.drift_factor < kMostDrift)) {
    return Bad(fmt::format("drift_factor {} is out of range", lock.drift_factor),
               "at least 0 and below 0.5; 0.01 is usual");
  }
  if (lock.ttl > kMaxTtl || lock.Validity(lock.ttl) <= lock.min_validity) {
    return Bad(fmt::format("ttl {} ms, less the drift, leaves no more than min_validity {} ms",
                           lock.ttl.count(), lock.min_validity.count()),
               "raise ttl or lower min_validity");
  }
  return std::nullopt;
}

// Signals are the program's business: none is handled on the lock's thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

struct QuorumLock::Impl {
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  std::string name_space;
  LockOptions lock_options;
  std::thread thread;
};

tl::expected<std::unique_ptr<QuorumLock>, Error> QuorumLock::Connect(const Options& options) {
  if (auto problem = ProblemOf(options)) return tl::unexpected(std::move(*problem));
  auto impl = std::make_unique<Impl>();
  impl->name_space = options.name_space;
  impl->lock_options = options.lock;
  try {
    auto loop = std::make_unique<LockLoop>(impl->mailbox, options);
    const SignalsBlocked blocked;
    impl->thread = std::thread([loop = std::move(loop)] { loop->Run(); });
  } catch (const std::exception& e) {
    return tl::unexpected(Error{"no_thread", fmt::format("the lock cannot start: {}", e.what()), "",
                                "raise the limits on threads and open files"});
  }
  return std::unique_ptr<QuorumLock>(new QuorumLock(std::move(impl)));
}

QuorumLock::QuorumLock(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

QuorumLock::~QuorumLock() {
  CheckMayBlock();
  const bool posted = impl_->mailbox->Post([](LockLoop& loop) { loop.Stop(); });
  FENCEPOST_CHECK(posted, "a QuorumLock was destroyed twice");
  impl_->thread.join();
}

tl::expected<void, Error> QuorumLock::WaitReady(Millis timeout) {
  CheckMayBlock();
  const auto ready = std::make_shared<std::promise<Settled>>();
  auto answer = ready->get_future();
  const auto answered = [&answer](Millis limit) {
    return answer.wait_for(limit) == std::future_status::ready;
  };
  if (!impl_->mailbox->Post([ready](LockLoop& loop) { loop.AwaitReady(ready); })) {
    return tl::unexpected(ClosedError(""));
  }
  if (answered(std::clamp(timeout, Millis(0), kLongestWait))) return answer.get();
  const auto late = std::make_shared<std::promise<Error>>();
  const bool posted =
      impl_->mailbox->Post([late](LockLoop& loop) { late->set_value(loop.WhyNotReady()); });
  if (!posted) return tl::unexpected(ClosedError(""));
  Error why = late->get_future().get();
  if (answered(Millis(0))) return answer.get();
  return tl::unexpected(std::move(why));
}

std::string QuorumLock::StoreId() const {
  CheckMayBlock();
  const auto id = std::make_shared<std::promise<std::string>>();
  const bool posted = impl_->mailbox->Post([id](LockLoop& loop) { id->set_value(loop.StoreId()); });
  return posted ? id->get_future().get() : "";
}

void QuorumLock::CheckMayBlock() const {
  FENCEPOST_CHECK(!impl_->mailbox->OnLoopThread(),
                  "a blocking call on a QuorumLock from a callback");
}

const std::string& QuorumLock::name_space() const { return impl_->name_space; }

const LockOptions& QuorumLock::lock_options() const { return impl_->lock_options; }

QuorumLock::Result QuorumLock::Acquire(const std::string& name, const AcquireOptions& options) {
  return std::move(AcquireAll({name}, options).front());
}

void QuorumLock::AcquireAsync(const std::string& name, const AcquireOptions& options,
                              std::function<void(Result)> callback) {
  FENCEPOST_CHECK(callback, "AcquireAsync without a callback");
  AcquireAllAsync({name}, options, [callback = std::move(callback)](std::vector<Result> results) {
    callback(std::move(results.front()));
  });
}

std::vector<QuorumLock::Result> QuorumLock::AcquireAll(const std::vector<std::string>& names,
                                                       const AcquireOptions& options) {
  CheckMayBlock();
  const auto all = std::make_shared<std::promise<std::vector<Result>>>();
  AcquireAllAsync(names, options,
                  [all](std::vector<Result> results) { all->set_value(std::move(results)); });
  return all->get_future().get();
}

void QuorumLock::AcquireAllAsync(std::vector<std::string> names, const AcquireOptions& options,
                                 std::function<void(std::vector<Result>)> callback) {
  FENCEPOST_CHECK(callback, "AcquireAllAsync without a callback");
  if (names.empty()) return callback({});
  auto group = std::make_shared<AcquireGroup>();
  group->names = std::move(names);
  group->options = options;
  group->on_all = std::move(callback);
  if (impl_->mailbox->Post([group](LockLoop& loop) { loop.Acquire(group); })) return;
  std::vector<Result> results;
  for (const std::string& name : group->names) {
    results.emplace_back(tl::unexpected(ClosedError(name)));
  }
  group->on_all(std::move(results));
}

}  // namespace fencepost::locking
