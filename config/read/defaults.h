// Defaults that depend on other keys, for the loader and for lint. Values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "config/read/reader.h"
#include "locking/core/options.h"

namespace fencepost::config {

// What lock.redis.nodes lists.
std::span<const Text> LockNodes(const Values& values);
// Whether the output keeps the ledger in its own transaction (postgres, mysql, sqlite).
bool HasLedger(const Values& values);
// Whether a record's identity is its position.
bool ByPosition(const Values& values);
// Whether neighbouring offsets share a lock (consumer::LockBlock).
bool SharesLocks(const Values& values);
// Where DONE marks alone decide, all nodes are asked for one.
locking::Contact LockContact(const Values& values);
// What lock.remember_done is raised to: less could end another's lease and then be forgotten.
Milliseconds LeastRememberDone(const Values& values);
// processing.max_in_flight: with a Kafka output room for two transactions.
std::int64_t MaxInFlight(const Values& values);
// Whether on_id_conflict or on_bad_record sends to the dead letter topic.
bool DeadLetters(const Values& values, std::string_view path);

}  // namespace fencepost::config
