// Reads single records of a partition's log again, for a ledger by position that asks whether it is
// still the log in which its records were done. By a consumer of its own, apart from the group,
// that is made when it is first asked.
#pragma once

#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// What it makes is for one thread, and waits for brokers a few seconds at most.
ReadLog MakeLogReader(KafkaOptions kafka);

}  // namespace fencepost::consumer
