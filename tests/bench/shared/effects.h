// What a run left in the table effects(order_id, amount) of a PostgreSQL with
// track_commit_timestamp.
#pragma once

#include <cstdint>

#include "tests/support/postgres_server.h"

namespace fencepost::bench {

// Throws unless no id has two effects, and there are `least` to `most` of them.
void CheckEffects(const testing::PostgresServer& postgres, std::int64_t least, std::int64_t most);
// When the last effect was committed (before its fsync, as PostgreSQL notes it), in epoch seconds.
// At least one must be there.
double LastCommit(const testing::PostgresServer& postgres);

}  // namespace fencepost::bench
