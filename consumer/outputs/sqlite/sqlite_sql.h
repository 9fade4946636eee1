// The statements on the table of effects, by the rules. Parameters ?1… are the shape's columns.
// Pure; any thread.
#pragma once

#include <string>

#include "consumer/outputs/rows/row_rules.h"
#include "consumer/outputs/sqlite/sqlite_schema.h"

namespace fencepost::consumer {

std::string InsertSql(const SqliteTarget& target, const RowShape& shape);
// Uses key and fence alone.
std::string DeleteSql(const SqliteTarget& target, const RowShape& shape);

}  // namespace fencepost::consumer
