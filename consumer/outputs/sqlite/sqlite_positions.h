// The ledger by position in an SQLite file: a row a partition, whose `done` is a text of ranges. It
// is read, changed here and written within one transaction, under the file's write lock. One
// thread, the connection's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/batch_rows.h"
#include "consumer/outputs/positions/position_batch.h"
#include "consumer/outputs/positions/position_memory.h"
#include "consumer/outputs/sqlite/sqlite_connection.h"

namespace fencepost::consumer {

class SqlitePositions {
 public:
  template <typename T>
  using Maybe = tl::expected<T, SqliteFailure>;

  SqlitePositions(SqliteConnection& connection, const std::string& pipeline,
                  const std::string& worker, const OutputTerms& terms)
      : connection_(connection), pipeline_(pipeline), worker_(worker), memory_(worker, terms) {}

  Maybe<void> Prepare();
  void Reset();  // before the connection is closed
  [[nodiscard]] PositionMemory& memory() { return memory_; }

  // --- within a transaction, in this order ---
  Maybe<void> Begin(const BatchRows& rows);
  // What is to be said of a record that was done before; nullopt: it is new, and counts as done.
  std::optional<WriteOutcome> DoneBefore(std::size_t record, const WriteItem& item);
  Maybe<void> End(std::string_view now);
  // --- and once it is committed ---
  // The error: it stands, but its outcomes must not be told.
  tl::expected<void, OutputError> Committed();

  // One a part, with all that is done of its partition.
  Maybe<std::vector<std::optional<PositionRow>>> Read(const std::vector<PositionPart>& parts);
  // In a transaction of its own; the caller rolls back after a failure.
  Maybe<std::size_t> TakeBack(const std::vector<PositionPart>& parts);
  Maybe<bool> KnowsTopic(std::string_view topic);

 private:
  void BindKey(sqlite3_stmt* statement, const PositionKey& key);
  Maybe<void> Store(const PositionKey& key, const PositionRow& row);

  SqliteConnection& connection_;
  const std::string& pipeline_;
  const std::string& worker_;
  PositionMemory memory_;
  SqliteStatement look_, store_, knows_;
  // Of the transaction, one a part.
  PositionBatch batch_;
  std::vector<std::optional<PositionRow>> before_;
  struct Touched {
    bool known = false;  // a record that was done
    bool fresh = false;  // one that was not
  };
  std::vector<Touched> touched_;
};

}  // namespace fencepost::consumer
