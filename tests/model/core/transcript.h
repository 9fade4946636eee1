// A LockCore on a fake clock, whose nodes answer what the test says, when it says so. What is sent
// and what comes out is compared as text:
//
//   s.Acquire("x");
//   EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
//   s.Answer('a', ReplyCode::kGranted);
//   EXPECT_EQ(s.Events(), "leased");
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "locking/core/lock/lock_core.h"

namespace fencepost::locking {

class Transcript {
 public:
  // All nodes are connected members of one store. An acquire asks all of them at once, whatever
  // `with` says, unless `contact` and `few_locks` do.
  explicit Transcript(int nodes = 3, bool connected = true, const LockOptions& with = {},
                      LockObserver* observer = nullptr, Contact contact = Contact::kAll,
                      std::size_t few_locks = 0);

  LockId Acquire(const std::string& name, Millis wait = Millis(0), bool watchdog = true);
  LockId AcquireAs(AcquireSpec spec);
  // As Acquire, and Send.
  LockId Ask(const std::string& name, Millis wait = Millis(0), bool watchdog = true) {
    const LockId lock = Acquire(name, wait, watchdog);
    Send();
    return lock;
  }
  void Extend(LockId lock) {
    core.ExtendNow(lock, now);
    Send();
  }
  // Takes one batch of every node that has nothing out: "a:acquire c:extend,release".
  std::string Send();
  // The nodes with something out, as "ace".
  [[nodiscard]] std::string Asked() const {
    std::string asked;
    for (char node = 'a'; node < 'a' + nodes_; ++node) {
      if (!out[static_cast<std::size_t>(node - 'a')].empty()) asked += node;
    }
    return asked;
  }
  // Answers the oldest operation that is out at the node, or at each of these nodes.
  void Answer(char node, ReplyCode code) { Answer(node, Reply{.code = code}); }
  void Answer(char node, Reply reply);
  void Answer(std::string_view nodes, ReplyCode code) { Answer(nodes, Reply{.code = code}); }
  void Answer(std::string_view nodes, const Reply& reply) {
    for (const char node : nodes) Answer(node, reply);
  }
  // All that is out everywhere, alike.
  void AnswerAll(ReplyCode code);
  // A lease of "x" by grants of all nodes.
  LockId Lease(bool watchdog = true);
  // Events since the last call: "leased", "lost:expired", "round-failed:contended released:stolen".
  std::string Events();

  void Connect(char node, bool quarantined = false);
  void Pass(Nanos time) { now.boot += time, now.wall += std::chrono::floor<Millis>(time); }
  // What the core began and ceased to watch since the last call: "+x -y".
  std::string Watched();
  // Time goes on to what the core waits for next.
  void PassToNext();

  LockOptions options;
  Now now{Instant(std::chrono::seconds(1000)), WallTime(Millis(1'800'000'000'000))};
  std::uint64_t random = 0;  // the state of the core's source
  LockCore core;
  // The operations that are out at each node, oldest first.
  std::array<std::deque<Op>, kMaxNodes> out;
  const Op& Out(char node) const { return out[static_cast<std::size_t>(node - 'a')].front(); }

 private:
  const int nodes_;
};

// Of three nodes, which are connected and asked at once.
class ThreeNodes : public ::testing::Test {
 protected:
  Transcript s;
};

}  // namespace fencepost::locking
