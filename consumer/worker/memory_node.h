// A lock node of one process, for `fencepost test` and `dev`: holds, marks and fencing floors in
// memory, which stay as long as it. It is never wiped, has no quarantine, and trusts its clients'
// clocks, which are its own; the protocol's whole rules are those of the scripts
// (locking/PROTOCOL.md). One thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "locking/core/ops.h"
#include "locking/core/options.h"
#include "locking/core/store/store.h"

namespace fencepost::consumer {

class MemoryNode {
 public:
  // Node `index` of `count` of a store that is ready for use.
  MemoryNode(int index, int count, const locking::LockOptions& options);

  [[nodiscard]] locking::NodeInfo Info(const locking::Now& now) const;
  locking::Reply Answer(const locking::Op& op, locking::WallTime now);
  // From now on the name is another's, for a lease's time.
  void Steal(std::string_view name, locking::WallTime now);

 private:
  struct Name {
    bool done = false;
    locking::Token token;  // of the holder or the mark; afterwards the floor of the next one's
    locking::Nonce nonce;
    locking::WallTime until{};  // held or marked until then
    locking::ContentCrc crc = 0;
  };

  locking::LockOptions options_;
  std::string run_id_;
  std::string sentinel_;
  std::unordered_map<std::string, Name> names_;
};

}  // namespace fencepost::consumer
