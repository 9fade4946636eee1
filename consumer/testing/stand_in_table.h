// A table of SQLite in the place of a database's: its columns and its rules for rows. What only the
// database knows of it (types, constraints, defaults) is not there. For `fencepost test` and `dev`.
#pragma once

#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"

struct sqlite3;

namespace fencepost::consumer {

// Columns, rules and max_records of an output with a table, named "effects"; of a statement its
// arguments as $1 and so on. It has no path yet.
SqliteOptions StandInFor(const OutputOptions& output);

// Creates the file and the table. A column is a text but for the fence, which compares as a number
// where it is one, and for what `convert` makes of it, or of each element; unique is what `key`
// says. Error: SQLite's words.
tl::expected<std::shared_ptr<sqlite3>, std::string> CreateTable(const SqliteOptions& table);

}  // namespace fencepost::consumer
