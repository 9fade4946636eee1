// What the journals and the counters say about the lock.
//
// A lease stands from the first instant at which its holder saw it valid (CLOCK_BOOTTIME) to the
// last `valid_until` that it saw, or to just before it gave it back, or to when it saw it lost,
// whichever is first. No two leases of a name may stand at once.
//
// Nothing is excused, since the storm keeps out of the windows that PROTOCOL.md names: on three and
// more nodes one node at a time is wiped, restarted or jumped, and the next only after that one's
// quarantine (others may be frozen for a moment, which forgets nothing); a jump is of a minute, so
// that the node refuses to grant at all (its time and every token lie further apart than max_skew)
// instead of freeing leases for others. On one node there is no wipe and no jump: after either,
// nothing would be left that knows of the leases, or that they are not over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fault/mutual_exclusion/journal.h"
#include "tests/fault/mutual_exclusion/resource.h"

namespace fencepost::torture {

struct Held {
  std::uint32_t name = 0;
  std::uint64_t token = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::int64_t asked_ns = 0;  // when its acquire was called
};

struct Tally {
  std::int64_t leases = 0;
  std::int64_t contended = 0;
  std::int64_t no_quorum = 0;
  std::int64_t other_errors = 0;
  std::int64_t losses = 0;
};

class Judge {
 public:
  // All that one process wrote down.
  void Hear(const std::vector<Entry>& journal);
  [[nodiscard]] const Tally& tally() const { return tally_; }
  [[nodiscard]] const std::vector<Held>& leases() const { return leases_; }

  // One line for each two leases of a name that stood at the same time.
  [[nodiscard]] std::vector<std::string> Overlaps() const;
  // One line for each lease whose token is not above that of the one before it (by their starts).
  [[nodiscard]] std::vector<std::string> Disorders() const;

 private:
  [[nodiscard]] std::vector<Held> Sorted() const;  // by name, then start

  Tally tally_;
  std::vector<Held> leases_;
};

// "" when each accepted write of the fenced counter raised it by one, under tokens in order.
std::string WrongWith(const Counter& fenced);

}  // namespace fencepost::torture
