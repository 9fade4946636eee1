// The ledger by position, as a database keeps it: its rows, as they have been at each moment, and
// what a transaction does to them by the shipped rules (PositionChanges).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "consumer/outputs/ledger/position_memory.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

struct LedgerItem {
  std::string id;
  std::string source;
  locking::Token token;
  locking::ContentCrc crc = 0;
  // The table of this effect, counted from 1, does not take such a row; 0: each takes it.
  std::size_t refused = 0;
  bool makes_rows = true;  // else nothing is written for it
  bool letter = false;     // … for it is a dead letter
  std::uint64_t chain = 0;
  std::string key;         // of its row in the table, which takes no change
  std::int64_t fence = 0;  // that is older
};

class PositionTable {
 public:
  using Rows = consumer::PositionMemory::Rows;

  [[nodiscard]] Rows Read(const std::vector<consumer::PositionPart>& parts) const;
  void Store(const consumer::PositionKey& key, consumer::PositionRow row, Nanos at);
  // What was stored at `since` or later is gone.
  void FailOver(Nanos since);

 private:
  struct Version {
    Nanos at;
    consumer::PositionRow row;
  };
  std::map<consumer::PositionKey, std::vector<Version>> rows_;
};

// A transaction on its way, which goes on without the worker that has sent it.
class PositionWrite {
 public:
  PositionWrite(std::string worker, const consumer::BatchRows& rows);
  PositionWrite(const PositionWrite&) = delete;
  PositionWrite& operator=(const PositionWrite&) = delete;

  // It has the locks of its rows. By the places of the items: what is to be said of those that were
  // done before. `is_letter`: the ledger has the row of a dead letter under this id.
  using DoneBefore = std::vector<std::optional<consumer::WriteOutcome>>;
  DoneBefore Lock(const PositionTable& table, const std::vector<LedgerItem>& items,
                  const std::function<bool(const std::string&)>& is_letter);
  void Store(PositionTable& table, Nanos at) const;
  // The rows as they were under the locks.
  [[nodiscard]] const PositionTable::Rows& before() const { return before_; }
  [[nodiscard]] const std::vector<std::size_t>& reopened() const { return reopened_; }  // records

 private:
  const consumer::OutputTerms terms_;  // nothing of them is asked for
  consumer::PositionMemory memory_;
  consumer::PositionChanges changes_;
  std::vector<std::size_t> items_;  // by record of the rows
  PositionTable::Rows before_;
  std::vector<std::size_t> reopened_;
};

}  // namespace fencepost::simulator
