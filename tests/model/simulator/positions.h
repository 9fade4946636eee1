// The ledger by position, as a database keeps it: its rows, as they have been at each moment, and
// what a transaction does to them by the shipped rules (PositionChanges).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "consumer/outputs/ledger/position_memory.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

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
  // done before; their tokens are asked for.
  using DoneBefore = std::vector<std::optional<consumer::WriteOutcome>>;
  DoneBefore Lock(const PositionTable& table, const std::vector<locking::Token>& tokens);
  void Store(PositionTable& table, Nanos at) const;
  // The rows as they were under the locks.
  [[nodiscard]] const PositionTable::Rows& before() const { return before_; }

 private:
  const consumer::OutputTerms terms_;  // nothing of them is asked for
  consumer::PositionMemory memory_;
  consumer::PositionChanges changes_;
  std::vector<std::size_t> items_;  // by record of the rows
  PositionTable::Rows before_;
};

}  // namespace fencepost::simulator
