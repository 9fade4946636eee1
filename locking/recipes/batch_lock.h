// As many of these names as are free: for workers that share a list of work ("send these
// notifications"), where what another one has in hand is simply left to it.
//
//   Batch batch = AcquireFree(*lock, ids, {.most = 100});
//   for (Lease& lease : batch.leases) Send(lease.name(), lease.token());
//   batch.Done();          // marks all of them done, in one go: nobody sends them again
//
// One round of questions: a node gets the names in calls of at most 512. Nothing is waited for.
// With `most`, only as many names are asked for at a time as may still be held. Two workers that
// ask for the same free name at the same instant may both be left without it: go round again until
// the rest is "done". Threads: as QuorumLock and Lease.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "locking/quorum_lock/quorum_lock.h"

namespace fencepost::locking {

struct BatchOptions {
  std::size_t most = SIZE_MAX;  // stop asking when so many are held
  // wait, tries and delay are not used: a name that is not free now is left to its holder.
  AcquireOptions acquire{};
};

struct Batch {
  // What was asked for and not had: contended, done, no_quorum, … (`where` is the name). A name
  // that was not asked for because `most` were held already is in neither list.
  struct Left {
    std::string name;
    Error error;
  };
  std::vector<Lease> leases;  // in the order of the names
  std::vector<Left> left;

  // All at once, waiting once. Element i belongs to leases[i]; errors as Lease::Done, outcomes as
  // Lease::Release. The leases are over afterwards.
  std::vector<tl::expected<void, Error>> Done(ContentCrc crc = 0, Millis remember = Millis(0));
  std::vector<ReleaseOutcome> Release();
};

Batch AcquireFree(QuorumLock& lock, const std::vector<std::string>& names,
                  const BatchOptions& options = {});

}  // namespace fencepost::locking
