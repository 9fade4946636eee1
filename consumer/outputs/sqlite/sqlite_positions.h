// The ledger by position in an SQLite file: a row a partition, whose `done` is a text of ranges. It
// is read, changed here and written within one transaction, under the file's write lock. One
// thread, the connection's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/position_changes.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/outputs/sqlite/sqlite_connection.h"

namespace fencepost::consumer {

class SqlitePositions {
 public:
  template <typename T>
  using Maybe = tl::expected<T, SqliteFailure>;

  SqlitePositions(SqliteConnection& connection, const std::string& pipeline, PositionMemory& memory)
      : connection_(connection), pipeline_(pipeline), changes_(memory) {}

  Maybe<void> Prepare();
  void Reset();  // before the connection is closed
  [[nodiscard]] PositionChanges& changes() { return changes_; }

  // The first and the last of a transaction.
  Maybe<void> Lock();
  Maybe<void> Store(std::string_view now);

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
  PositionChanges changes_;
  SqliteStatement look_, store_, knows_;
};

}  // namespace fencepost::consumer
