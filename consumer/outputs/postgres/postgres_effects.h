// The part of a write that changes the table of effects, by the rules. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "consumer/outputs/postgres/postgres_schema.h"

namespace fencepost::consumer {

// "{a}, {b}, …" of what `part` makes of the columns.
template <typename Part>
std::string Listed(std::size_t count, Part part) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) list += ", ";
    list += part(i);
  }
  return list;
}

// The columns of the table.
std::string Names(const PgTarget& target);

// CTEs behind `e`, the rows of the records that were inserted: ord (the order in which they count),
// del, and the columns' values v0, v1, …
std::string EffectsSql(const PgTarget& target, const RowShape& shape);

}  // namespace fencepost::consumer
