// The thread behind a QuorumLock: LockCore and RedisEngine on one io_context. Commands come by the
// mailbox; leases and answers go back. Private to the library (it shows Asio).
//
// Everything here runs on the loop's own thread; LeaseState is what is shared with the users.
#pragma once

#include <asio/io_context.hpp>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "locking/core/lock/lock_core.h"
#include "locking/quorum_lock/quorum_lock.h"
#include "locking/redis/address.h"
#include "locking/redis/engine/engine.h"

namespace fencepost::locking {

using Settled = tl::expected<void, Error>;
template <typename T>
using Promise = std::shared_ptr<std::promise<T>>;  // an answer to another thread

inline constexpr Millis kMaxTtl{99'999'999};  // what a sentinel can say

Error ClosedError(const std::string& name);
Error CancelledError(const std::string& name);

class LockLoop;

// How other threads talk to the loop: commands in. Any thread.
class Mailbox {
 public:
  using Command = std::function<void(LockLoop&)>;

  // `wake` is called when the first command of a batch arrives, until Close.
  void Open(std::function<void()> wake) {
    const std::lock_guard guard(mutex_);
    wake_ = std::move(wake);
    closed_ = false;
  }
  void SetLoopThread(std::thread::id id) {
    const std::lock_guard guard(mutex_);
    loop_thread_ = id;
  }
  [[nodiscard]] bool OnLoopThread() const {
    const std::lock_guard guard(mutex_);
    return loop_thread_ == std::this_thread::get_id();
  }
  // False when it is closed: the command was not taken and will not run.
  [[nodiscard]] bool Post(Command command) {
    const std::lock_guard guard(mutex_);
    if (closed_) return false;
    commands_.push_back(std::move(command));
    if (commands_.size() == 1) wake_();
    return true;
  }
  std::vector<Command> Take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(commands_, {});
  }
  // Returns what was posted before. The loop's thread only.
  std::vector<Command> Close() {
    const std::lock_guard guard(mutex_);
    closed_ = true;
    wake_ = nullptr;
    loop_thread_ = {};
    return std::exchange(commands_, {});
  }

 private:
  mutable std::mutex mutex_;
  bool closed_ = true;
  std::function<void()> wake_;
  std::vector<Command> commands_;
  std::thread::id loop_thread_;
};

struct LeaseState {
  // Set before it is shared.
  std::shared_ptr<Mailbox> mailbox;
  std::uint64_t cookie = 0;
  std::string name;
  Token token;
  Millis node_timeout{0};

  std::atomic<Instant::rep> valid_until{Instant::min().time_since_epoch().count()};
  std::atomic<bool> ended{false};  // lost, or a user began to end it
  std::stop_source lost;

  // How it ended; written by the loop.
  mutable std::mutex mutex;
  Error why{"ended", "the lease was released or done before", "", ""};
  ReleaseOutcome outcome = ReleaseOutcome::kUnknown;

  [[nodiscard]] Error Why() const {
    const std::lock_guard guard(mutex);
    return why;
  }
  [[nodiscard]] ReleaseOutcome Outcome() const {
    const std::lock_guard guard(mutex);
    return outcome;
  }
};

// Names asked for together, and their results.
struct AcquireGroup {
  std::vector<std::string> names;
  AcquireOptions options;
  std::function<void(std::vector<QuorumLock::Result>)> on_all;

  std::vector<QuorumLock::Result> results;  // an Error in place of what is not decided yet
  std::vector<std::uint64_t> cookies;       // 0: decided without asking
  std::size_t undecided = 0;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;
};

class LockLoop {
 public:
  LockLoop(std::shared_ptr<Mailbox> mailbox, const QuorumLock::Options& options);
  ~LockLoop();
  LockLoop(const LockLoop&) = delete;
  LockLoop& operator=(const LockLoop&) = delete;

  void Run();  // until Stop; then gives everything back

  // Commands.
  void Stop() { stopping_ = true; }
  void Acquire(const std::shared_ptr<AcquireGroup>& group);
  void Cancel(const std::shared_ptr<AcquireGroup>& group);
  void Extend(const LeaseState& lease, Promise<Settled> promise);
  void Done(const LeaseState& lease, ContentCrc crc, Millis remember, Promise<Settled> promise);
  void Release(const LeaseState& lease, const std::function<void(ReleaseOutcome)>& callback);
  void AwaitReady(Promise<Settled> promise);
  Error WhyNotReady() const;
  [[nodiscard]] const std::string& StoreId();

 private:
  struct Entry {
    LockId lock;
    Millis ttl{0};
    bool watchdog = true;
    std::shared_ptr<AcquireGroup> group;  // until it is decided
    std::size_t index = 0;                // in the group
    std::shared_ptr<LeaseState> lease;    // from then on
    Instant check_at = Instant::max();    // its place in checks_
    std::function<void(const Error&)> on_lost;
    std::vector<Promise<Settled>> extending;
    Promise<Settled> marking;
    std::vector<std::function<void(ReleaseOutcome)>> releasing;
    bool ending = false;  // done or release is out

    [[nodiscard]] const std::string& Name() const {
      return group ? group->names[index] : lease->name;
    }
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;

  void DrainMailbox();
  void Begin(const std::shared_ptr<AcquireGroup>& group, std::size_t index, Now now);
  [[nodiscard]] std::optional<Error> ProblemOf(const std::string& name,
                                               const AcquireOptions& options) const;
  void OnStep();
  void OnEvent(const LockEvent& event, Now now);
  void OnLeased(Entries::iterator at, const LockEvent& event, Now now);
  void OnRoundFailed(Entries::iterator at, const LockEvent& event, Now now);
  void OnMarked(Entries::iterator at, const LockEvent& event);
  void OnReleased(Entries::iterator at, const LockEvent& event);
  void Lose(Entry& entry, const Error& why, ReleaseOutcome outcome);
  void Decide(const std::shared_ptr<AcquireGroup>& group, std::size_t index,
              QuorumLock::Result result);
  // The acquire has ended without a lease.
  void Fail(Entries::iterator at, Error error);
  // Where it is not held, tells `promise` why and returns entries_.end().
  Entries::iterator Held(const LeaseState& lease, std::promise<Settled>& promise);
  void Erase(Entries::iterator at);
  void ScheduleCheck(std::uint64_t cookie, Entry& entry, Instant at);
  void CheckExtensions(Now now);
  [[nodiscard]] Instant NextExtension(const Entry& entry, Instant valid_until) const;
  [[nodiscard]] Error GaveUp(const Entry& entry, WaitReason reason) const;
  [[nodiscard]] std::string Key(const std::string& name) const;
  void Close();

  const std::shared_ptr<Mailbox> mailbox_;
  const QuorumLock::Options options_;
  asio::io_context io_{1};
  LockCore core_;
  RedisEngine engine_;
  bool stopping_ = false;
  std::string store_id_;  // as it was when the store could last be used
  std::uint64_t last_cookie_ = 0;
  Entries entries_;
  std::vector<LockEvent> events_;
  // When the valid_until of a held lease may have changed: from the start of its extension on.
  std::set<std::pair<Instant, std::uint64_t>> checks_;
  std::vector<Promise<Settled>> ready_;
};

}  // namespace fencepost::locking
