// What `lint --online` asks the servers that a pipeline names, before a worker does: whether a
// worker could start, read and write. Nothing is created, written or joined. Each part blocks for
// about its limit at most; they share nothing and run side by side.
#pragma once

#include <vector>

#include "config/loader.h"
#include "consumer/pipeline/options.h"

namespace fencepost::cli {

// Of one pipeline that has options. Errors keep a worker from working; a warning is what it would
// get over by itself (a ledger to be created, one lock node of several away).
std::vector<config::Finding> LintOnline(const config::LoadResult& loaded, consumer::Millis limit);

}  // namespace fencepost::cli
