// The ledger by position in MySQL: a row a partition, whose `done` is a text of ranges. One thread,
// the connection's.
//
// Within a transaction the rows of the batch are locked first, each by its whole key and in the
// order of the keys, then read: InnoDB's locking read has what was committed last, whatever the
// transaction saw before. Rows that are missing are inserted, and are locked by that. Where another
// writer inserts one at the same time, the transaction is rolled back and done again at once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/position_changes.h"
#include "consumer/outputs/mysql/mysql_connection.h"

namespace fencepost::consumer {

class MysqlPositions {
 public:
  template <typename T>
  using Maybe = tl::expected<T, MysqlFailure>;
  using Rows = PositionMemory::Rows;

  MysqlPositions(MysqlConnection& connection, const std::string& pipeline, PositionMemory& memory)
      : connection_(connection), pipeline_(pipeline), changes_(memory) {}

  void OnConnected(std::string ledger) { ledger_ = std::move(ledger); }  // its name, quoted
  [[nodiscard]] PositionChanges& changes() { return changes_; }

  // The first and the last of a transaction.
  Maybe<void> Lock();
  Maybe<void> Store();

  // --- questions ---
  // One a part, with all that is done of its partition.
  Maybe<Rows> Read(const std::vector<PositionPart>& parts) { return Select(parts, ""); }
  // In a transaction of its own; the caller rolls back after a failure.
  Maybe<std::size_t> TakeBack(const std::vector<PositionPart>& parts);
  Maybe<bool> KnowsTopic(const std::string& topic);

 private:
  Maybe<Rows> Select(const std::vector<PositionPart>& parts, std::string_view how);
  Maybe<void> Run(const std::string& sql);
  void AppendKey(const PositionKey& key, std::string& sql) const;  // "'p', X'…', X'…', 3"
  [[nodiscard]] std::string Is(const PositionKey& key) const;      // "(pipeline = 'p' AND …)"

  MysqlConnection& connection_;
  const std::string& pipeline_;
  PositionChanges changes_;
  std::string ledger_;
};

}  // namespace fencepost::consumer
