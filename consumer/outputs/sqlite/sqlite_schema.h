// What is in the SQLite file: the table of effects, and the ledger. One thread.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/rows/row_rules.h"
#include "consumer/outputs/sqlite/sqlite_connection.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct SqliteTarget {
  std::string table;        // quoted
  std::vector<bool> blobs;  // by the shape's columns: takes bytes, not text
};

// Checks table, columns, what the rules ask, and ledger before the first record, and creates the
// ledger where it is missing and may be created.
tl::expected<SqliteTarget, OutputError> LearnTarget(SqliteConnection& connection,
                                                    const SqliteOptions& options,
                                                    const RowShape& shape,
                                                    const LedgerTerms& terms);

}  // namespace fencepost::consumer
