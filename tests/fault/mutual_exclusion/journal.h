// What a worker of the torture writes down about its leases and what it asked of the fenced
// counter: one record a write(2), so that a SIGKILL leaves whole records. Files of one machine,
// native layout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fencepost::torture {

struct Entry {
  enum class Kind : std::uint32_t {
    kHeld,       // at `at_ns` the lease was valid until `until_ns`; again whenever that moved
    kReleasing,  // about to give it back
    kLost,       // seen to be lost, or over by its own clock
    kContended,  // an acquire that came to nothing, by its error
    kNoQuorum,
    kOtherError,
    kRead,      // about to read the fenced counter
    kWrite,     // about to write `value` to it
    kAdmitted,  // its answer to the one before of this token: `value` as it is now
    kRefused,
  };
  Kind kind = Kind::kHeld;
  std::uint32_t name = 0;
  std::uint64_t token = 0;
  std::int64_t at_ns = 0;  // CLOCK_BOOTTIME
  std::int64_t until_ns = 0;
  std::int64_t asked_ns = 0;  // kHeld: when the acquire was called
  std::int64_t value = 0;
};

class Journal {
 public:
  explicit Journal(const std::string& path);  // throws std::runtime_error
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  // From any thread. Aborts the process when it cannot be written: a gap would hide a failure.
  void Write(const Entry& entry) const;

 private:
  int fd_;
};

std::vector<Entry> ReadJournal(const std::string& path);

}  // namespace fencepost::torture
