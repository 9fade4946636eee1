// The ledger in an SQLite file: looked up, deleted from, pruned. (Its rows are inserted where the
// effects are: sqlite.cc.) One thread, the connection's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "consumer/outputs/sqlite/sqlite_connection.h"

namespace fencepost::consumer {

void BindText(sqlite3_stmt* statement, int at, std::string_view text);  // not copied
// UTC with milliseconds: in the order of time as text, too.
std::string SqliteTimestamp(std::chrono::system_clock::time_point at);

class SqliteLedger {
 public:
  template <typename T>
  using Maybe = tl::expected<T, SqliteFailure>;

  SqliteLedger(SqliteConnection& connection, std::string pipeline)
      : connection_(connection), pipeline_(std::move(pipeline)) {}

  Maybe<void> Prepare();
  void Reset();  // before the connection is closed

  Maybe<std::optional<LedgerEntry>> Find(std::string_view id);
  // In a transaction of its own; the caller rolls back after a failure.
  Maybe<std::size_t> Delete(const std::vector<std::string>& ids);
  // At most `limit` rows completed before `before` that `scope` lets go, from the next window of
  // kPruneWindow rows.
  struct OldRow {
    std::string id;
    std::string source;
    std::string completed_at;
  };
  Maybe<std::vector<OldRow>> PrunableRows(const PruneScope& scope, locking::WallTime before,
                                          std::size_t limit);
  // Those of them that are still the same rows: one that was forgotten and written again since is
  // young. As Delete.
  Maybe<std::size_t> DeleteOld(const std::vector<OldRow>& rows);

 private:
  // Runs it for each of them, bound to it by `bind`; how many rows went.
  template <typename Each, typename Bind>
  Maybe<std::size_t> DeleteEach(sqlite3_stmt* statement, const std::vector<Each>& all, Bind bind);

  SqliteConnection& connection_;
  const std::string pipeline_;
  SqliteStatement look_, delete_, old_, delete_old_;
  std::string prune_from_;  // where the next window begins
};

}  // namespace fencepost::consumer
