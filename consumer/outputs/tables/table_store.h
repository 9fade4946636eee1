// A database as the plan of its tables sees it: looked at, and changed by statements that make or
// widen tables. One thread; every call blocks, within the limits of its connection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/table_check.h"
#include "consumer/outputs/tables/table_plan.h"
#include "consumer/outputs/tables/wanted_tables.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

class TableStore {
 public:
  template <typename T>
  using Answer = Catalogue::Answer<T>;

  virtual ~TableStore() = default;
  virtual Answer<void> Connect() = 0;
  // Since Connect.
  virtual Catalogue& catalogue() = 0;
  [[nodiscard]] virtual TableTerms terms() const = 0;
  // Catalogue::Run. A file that is not there yet is made.
  virtual Answer<void> Run(const std::vector<std::string>& statements) {
    return catalogue().Run(statements);
  }
};
std::unique_ptr<TableStore> MakePostgresTables(const PostgresOptions& options);
std::unique_ptr<TableStore> MakeMysqlTables(const MysqlOptions& options);
// To look makes no file: where there is none, the database is empty.
std::unique_ptr<TableStore> MakeSqliteTables(const SqliteOptions& options);
// nullptr: the output has no tables.
std::unique_ptr<TableStore> MakeTableStore(const OutputOptions& output);

// Asks for the wanted tables and the ledger.
TableStore::Answer<FoundTables> FindTables(Catalogue& catalogue,
                                           const std::vector<WantedTable>& wanted, bool by_position,
                                           Dialect dialect);

// `create: true`: what the plan says, where the ledger may be created. Two workers may do it at the
// same time. Who only looks is told what would be made: kLedgerMissing, or kTablesMissing.
TableStore::Answer<void> CreateTables(Catalogue& catalogue, const EffectShapes& effects,
                                      Dialect dialect, const LedgerTerms& asked,
                                      const TableTerms& terms);

}  // namespace fencepost::consumer
