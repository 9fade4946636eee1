// Types of columns as SQL: of what values are, and of a pipeline file's `types`. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "consumer/outputs/ledger/table_check.h"
#include "consumer/outputs/tables/wanted_tables.h"

namespace fencepost::consumer {

// Whether the text is one type and nothing more, such as `numeric(12,2)`, `text[]`,
// `timestamp(3) with time zone`, `enum('a','b')`. Empty: it is; else a predicate: "is …".
std::string ProblemOfType(std::string_view text, Dialect dialect);

// For a column of a new table, by its place in the shape.
std::string TypeFor(const WantedColumn& column, const RowShape& shape, std::size_t place,
                    Dialect dialect, const TableTerms& terms);

// A type as the file has it, in the words of the catalogue; PostgreSQL knows that itself
// (Catalogue::TypeInFull).
std::string TypeInCatalogue(std::string_view type, Dialect dialect);

// Of two that TypeInCatalogue made. MySQL takes for text(N) and blob(N) the smallest that holds it,
// by the bytes of the column's characters.
bool IsSameType(std::string_view asked, std::string_view is, Dialect dialect);

// What such values meet in a column that is there, in words: "does not hold …". Empty: nothing, or
// it is not known.
std::string ProblemOfKind(ValueKind kind, const ColumnFacts& column);
std::string_view WordsOf(ValueKind kind);  // "whole numbers"

}  // namespace fencepost::consumer
