// Tables of SQLite in the place of a database's: their columns and their rules for rows. What only
// the database knows of them (types, constraints, defaults) is not there. For `fencepost test` and
// `dev`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"

struct sqlite3;

namespace fencepost::consumer {

// Effects and max_records of an output with tables, each without the schema around its name; a
// statement is a table of its arguments, $1 and so on, named "statement N". It has no path yet.
SqliteOptions StandInFor(const OutputOptions& output);

// As SQL and a file say it: in quotes where it needs them.
std::string Written(const std::string& name);

struct StandInTable {
  std::string name;
  std::vector<Column> columns;  // of all effects in it
  RowRules rules;               // of the first
};
std::vector<StandInTable> TablesOf(const SqliteOptions& options);

// Creates the file and the tables. A column is a text but for the fence, which compares as a number
// where it is one, and for what `convert` makes of it, or of each element; unique is what `key`
// says. Error: SQLite's words.
tl::expected<std::shared_ptr<sqlite3>, std::string> CreateTables(const SqliteOptions& options);

}  // namespace fencepost::consumer
