// The SQLite output, for the files that implement it: sqlite.cc connects and writes,
// sqlite_ledger.cc has the ledger by id, sqlite_positions.cc that by position.
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/outputs/ledger/stepwise_output.h"
#include "consumer/outputs/rows/cell_types.h"
#include "consumer/outputs/rows/row_sql.h"
#include "consumer/outputs/sqlite/sqlite_connection.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct SqliteTable {
  std::string name;                // quoted
  std::vector<CellType> cells;     // by the shape's columns
  std::vector<std::string> types;  // likewise, as people read them
};

struct SqliteTarget {
  std::vector<SqliteTable> tables;  // in the order of the effects
  std::vector<std::string> advice;
};

// Checks tables, columns, what the rules ask, and ledger before the first record, and creates the
// ledger where it is missing and may be created.
tl::expected<SqliteTarget, OutputError> LearnTarget(SqliteConnection& connection,
                                                    const SqliteOptions& options,
                                                    const EffectShapes& effects,
                                                    const LedgerTerms& terms);

// What a column of this declared type (in upper case) takes. Text and numbers are what its affinity
// makes of a text.
CellType SqliteCellType(std::string_view type, bool strict);

// What the columns take: cell_types.h.
class SqliteCells final : public CellTypes {
 public:
  SqliteCells(const SqliteTable& table, const RowShape& shape) : table_(&table), shape_(&shape) {}
  [[nodiscard]] std::string_view Name(std::size_t column) const override {
    return table_->types[column];
  }
  [[nodiscard]] const CellType* Type(std::size_t column) const override {
    return &table_->cells[column];
  }
  tl::expected<void, std::string> Convert(std::size_t column, std::optional<JsonType> type,
                                          std::string& text, std::size_t at) override;

 private:
  const SqliteTable* table_;
  const RowShape* shape_;
};

class SqliteOutput final : public StepwiseOutput {
 public:
  SqliteOutput(const SqliteOptions& options, std::string pipeline, std::string worker,
               OutputTerms terms)
      : StepwiseOutput(std::move(pipeline), std::move(worker), std::move(terms),
                       options.max_records, ShapesOf(options)),
        options_(options),
        connection_(options.path),
        prune_clock_(clock_()) {}
  ~SqliteOutput() override { Disconnect(); }

  [[nodiscard]] std::vector<std::string> Advice() const override { return target_.advice; }
  void Interrupt() override { connection_.Interrupt(); }

 private:
  [[nodiscard]] std::string Where() const override { return options_.path; }
  // Opens the file that its path leads to now.
  Answer<void> Connect() override;
  void Disconnect() override;
  [[nodiscard]] bool Connected() const override {
    return connection_.open() && !connection_.interrupted() && !connection_.Moved();
  }
  std::span<CellTypes* const> Cells() override { return types_; }

  Answer<void> Begin() override;
  Answer<void> Commit() override;
  Answer<void> Execute(const char* sql) override { return Exec(sql); }
  void RollBack() override;
  Answer<std::size_t> ChangeRows(Change change, const Rows& rows) override;
  Answer<bool> FindsRow(const Row& row) override {
    return Finds(effects_of_[row.table].find.get(), row);
  }
  Answer<Rows> FindNewer(const Rows& rows) override;
  Rows RefusedOf(const Rows& rows) override { return rows; }
  // The statement for a row that leaves columns out.
  Answer<sqlite3_stmt*> Partial(Change change, const Row& row);
  void BindCells(sqlite3_stmt* statement, const Row& row, bool key_alone);

  Answer<Entries> LockIds(const std::vector<std::string>& ids) override;
  Answer<void> InsertIds(const Records& fresh) override;
  Answer<std::size_t> DeleteNothingWritten(const std::vector<std::string>& ids) override;
  Answer<Entries> LookUpIds(const std::vector<std::string>& ids) override;
  Answer<std::size_t> ForgetIds(const std::vector<std::string>& ids) override;
  Answer<void> VisitOldRows(std::chrono::seconds keep, const std::string& from, bool behind,
                            const std::function<bool(OldRow)>& visit) override;
  Answer<std::size_t> DeleteRows(const std::vector<OldRow>& rows) override;
  Answer<bool> HasTopic(const std::string& topic) override;

  Answer<PositionMemory::Rows> ReadPositions(const Parts& parts) override;
  Answer<PositionMemory::Rows> LockPositions(const Parts& parts) override {
    return ReadPositions(parts);  // the file is locked
  }
  Answer<void> StorePositions(const Changes& changes) override;
  Answer<void> ForgetLetters(const PositionKey& key, const PositionRange& range) override;
  [[nodiscard]] std::string Time() const override;

  // UTC with milliseconds: in the order of time as text, too.
  static std::string Timestamp(std::chrono::system_clock::time_point at);
  // Of one table.
  struct EffectStatements {
    SqliteStatement insert, remove, find, find_newer;
    // Of rows that leave columns out, by which those are.
    std::map<std::pair<Change, std::vector<bool>>, SqliteStatement> partial;
  };
  enum Statement : std::size_t {
    kFindId,
    kInsertId,
    kDeleteId,
    kDeleteNothingWritten,
    kOldIds,
    kDeleteOldId,
    kReadPosition,
    kStorePosition,
    kForgetLetters,
    kHasTopic,
    kStatements,
  };
  using Texts = std::array<std::string, kStatements>;
  static void LedgerStatements(bool by_position, Texts& sql);
  Answer<void> PrepareStatements();
  // Whether this SELECT by key finds the table's row.
  Answer<bool> Finds(sqlite3_stmt* find, const Row& row);
  // These parameters, from the first on; not copied.
  sqlite3_stmt* Bound(Statement statement, std::initializer_list<std::string_view> texts);
  // true: a row is there.
  Answer<bool> Step(sqlite3_stmt* statement);
  Answer<void> Run(sqlite3_stmt* statement);
  Answer<void> Exec(const char* sql);
  // In a transaction of its own: `bound` makes each row's statement; how many rows went.
  template <typename Each, typename BoundTo>
  Answer<std::size_t> DeleteEach(const std::vector<Each>& all, BoundTo bound);
  [[nodiscard]] OutputError Refused(const SqliteFailure& failure) const;

  const SqliteOptions options_;
  SqliteConnection connection_;
  const PruneClock prune_clock_;
  std::optional<HeldFile> file_;  // the one that was prepared last
  SqliteTarget target_;
  std::vector<SqliteCells> cells_;            // by table
  std::vector<CellTypes*> types_;             // the same
  std::vector<EffectStatements> effects_of_;  // by table
  std::array<SqliteStatement, kStatements> statements_;
};

}  // namespace fencepost::consumer
