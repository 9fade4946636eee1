#include "locking/recipes/batch_lock.h"

#include <algorithm>
#include <utility>

namespace fencepost::locking {

std::vector<tl::expected<void, Error>> Batch::Done(ContentCrc crc, Millis remember) {
  return Lease::DoneAll(leases, crc, remember);
}

std::vector<ReleaseOutcome> Batch::Release() { return Lease::ReleaseAll(leases); }

Batch AcquireFree(QuorumLock& lock, const std::vector<std::string>& names,
                  const BatchOptions& options) {
  AcquireOptions once = options.acquire;
  once.wait = Millis(0);
  once.tries = 0;
  Batch batch;
  // Never more than may be held: what would have to be given back is not taken from others.
  for (auto next = names.begin(); next != names.end() && batch.leases.size() < options.most;) {
    const std::size_t wanted =
        std::min(options.most - batch.leases.size(), static_cast<std::size_t>(names.end() - next));
    const std::vector<std::string> asked(next, next + static_cast<std::ptrdiff_t>(wanted));
    next += static_cast<std::ptrdiff_t>(wanted);
    auto results = lock.AcquireAll(asked, once);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (results[i]) {
        batch.leases.push_back(std::move(*results[i]));
      } else {
        batch.left.push_back({asked[i], std::move(results[i].error())});
      }
    }
  }
  return batch;
}

}  // namespace fencepost::locking
