// What a pipeline needs of its database and what is there → the statements that are missing, and
// what differs, in words. Nothing is dropped, narrowed or changed in its type. Pure; any thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/ledger/table_check.h"
#include "consumer/outputs/tables/wanted_tables.h"

namespace fencepost::consumer {

// What the catalogue says (FindTables in table_store.h).
struct FoundTables {
  std::vector<std::optional<TableFacts>> tables;  // of the wanted ones, in their order
  std::vector<std::pair<const LedgerTable*, std::optional<TableFacts>>> ledgers;
  // Types of the file → as the catalogue writes them, for columns that are there.
  std::map<std::string, std::string> types;
  std::set<std::string> missing_schemas{};
};

struct TablePlan {
  struct Step {
    std::string sql;                   // one statement, or those of a ledger; no ; at the end
    std::vector<std::string> remarks;  // why it is as it is; a line each
  };
  std::vector<Step> steps;
  std::vector<std::string> differences;  // which no statement of the plan mends; a line each
  std::vector<std::string> notes;        // what works, and may not be meant; a line each
  [[nodiscard]] bool empty() const { return steps.empty() && differences.empty(); }
};

// `wanted` and `found.tables` are of one length. `exactly_once`: a table that cannot keep that
// differs.
TablePlan PlanTables(const std::vector<WantedTable>& wanted, const FoundTables& found,
                     Dialect dialect, const TableTerms& terms, bool exactly_once);

}  // namespace fencepost::consumer
