// The exit code of `lock exec` where the lock was not had. A pure function; any thread.
#pragma once

#include "consumer/cli/shared/command.h"
#include "locking/base/error.h"

namespace fencepost::cli {

// By the code of the error alone (quorum_lock.h lists them): what the command line asks and no node
// would ever grant is a usage error; a clock that the nodes do not accept is for want of a quorum.
inline int ExitFor(const Error& error) {
  if (error.code == "contended") return kContended;
  if (error.code == "bad_options" || error.code == "refused") return kUsage;
  if (error.code == "no_thread") return kFailed;
  return kNoQuorum;
}

}  // namespace fencepost::cli
