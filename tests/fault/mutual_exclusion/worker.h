// One worker of the torture, a process of its own: threads that take locks, raise the counters
// under them, and write down what they saw. It is killed and frozen from outside.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "locking/quorum_lock/quorum_lock.h"

namespace fencepost::torture {

// Short times, so that much happens. A quarantine lasts max_ttl + 2 × max_skew.
inline constexpr locking::Millis kTtl{600};
inline constexpr locking::Millis kMaxTtl{1'000};
inline constexpr locking::Millis kMaxSkew{500};
inline constexpr const char* kNameSpace = "torture";

std::string NameOf(int name);
locking::QuorumLock::Options LockOptionsFor(const std::vector<std::string>& nodes);

struct WorkerOptions {
  std::vector<std::string> nodes;
  std::string resource;
  std::string journal;
  std::uint64_t seed = 0;
  int names = 0;
  bool lawless = false;  // works without any lock: the judge must find it out
};

std::vector<std::string> WorkerCommand(const WorkerOptions& options);  // argv after the program
// What it says once SIGTERM no longer kills it.
inline constexpr const char* kCanBeStopped = "can be stopped";

// Until SIGTERM. `argv` from after the word `worker`. Returns the exit code.
int WorkerMain(const std::vector<std::string>& argv);

}  // namespace fencepost::torture
