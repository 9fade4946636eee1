// The options that come of a file: what is good in it where the rows of the schema say, and what
// follows from other keys. Values; any thread.
#pragma once

#include "config/read/reader.h"

namespace fencepost::config {

// `environment`: where AWS says of which region it is.
PipelineOptions OptionsOf(const Values& values, const Environment& environment);
// Whether the output keeps the ledger in its own transaction.
bool HasLedger(const PipelineOptions& options);
// Whether neighbouring offsets may share a lock (consumer::LockBlock).
bool SharesLocks(const PipelineOptions& options);

}  // namespace fencepost::config
