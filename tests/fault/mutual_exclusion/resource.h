// What the lock protects: counters in the process of the test, asked over a socket, so that a
// frozen worker holds nothing of it. Each request is atomic; a request that was sent counts, also
// when its sender was killed.
//
// A name has two counters that its holder raises by reading, thinking and writing:
//   fenced    reading registers the token, and reading and writing with a token below the highest
//             seen are refused. (Registering at the write only is not enough: a frozen holder could
//             write between the next one's read and write.)
//   unfenced  takes whatever comes. It shows what the lock alone lets through.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process.h"

namespace fencepost::torture {

struct Request {
  enum class Kind : std::uint32_t { kRead, kWrite } kind = Kind::kRead;
  std::uint32_t name = 0;
  std::uint32_t fenced = 0;
  std::uint64_t token = 0;
  std::int64_t value = 0;  // kWrite: what was read + 1
};
struct Answer {
  std::uint32_t admitted = 0;
  std::int64_t value = 0;  // as it is now
};

struct Counter {
  std::int64_t value = 0;
  std::int64_t accepted = 0;         // writes
  std::int64_t lost = 0;             // writes that did not raise what was there by one
  std::int64_t refused = 0;          // reads and writes
  std::int64_t disordered = 0;       // accepted below an accepted token; with a fence: never
  std::uint64_t highest = 0;         // token
  std::vector<std::uint64_t> order;  // tokens of accepted writes, each once in a row
};

class Resource {
 public:
  explicit Resource(int names);
  ~Resource();
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  [[nodiscard]] std::string path() const { return dir_.File("resource"); }
  [[nodiscard]] Counter Fenced(int name) const;
  // The processes that have read the unfenced counter and not written yet: the best moment to
  // freeze one.
  [[nodiscard]] std::vector<pid_t> Thinking() const;
  [[nodiscard]] std::int64_t UnfencedLost() const;

 private:
  struct Peer {
    pid_t pid = 0;
    bool thinking = false;
  };
  void Serve();
  Answer Handle(const Request& request);
  static Answer Apply(Counter& counter, const Request& request, bool fenced);

  testing::TempDir dir_;
  int listener_ = -1;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::vector<Counter> fenced_;
  std::vector<Counter> unfenced_;
  std::map<int, Peer> peers_;  // by fd
  std::thread thread_;
};

// One connection; one thread.
class ResourceClient {
 public:
  explicit ResourceClient(const std::string& path);  // throws std::runtime_error
  ~ResourceClient();
  ResourceClient(const ResourceClient&) = delete;
  ResourceClient& operator=(const ResourceClient&) = delete;
  Answer Ask(const Request& request) const;  // throws when the resource is gone

 private:
  int fd_;
};

}  // namespace fencepost::torture
