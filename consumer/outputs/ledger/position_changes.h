// What a transaction does to the rows of its partitions, where the database keeps ranges as a text:
// it reads the rows under their locks, asks here what is new, and stores what has changed. Values;
// no I/O. One thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/position_batch.h"
#include "consumer/outputs/ledger/position_memory.h"
#include "consumer/outputs/rows/batch_rows.h"

namespace fencepost::consumer {

class PositionChanges {
 public:
  explicit PositionChanges(PositionMemory& memory) : memory_(memory) {}

  // The records of a batch; `parts`: the rows to read, one each, in the order to lock them in.
  void Fill(const BatchRows& rows) { batch_.Fill(rows); }
  [[nodiscard]] const std::vector<PositionPart>& parts() const { return batch_.parts(); }
  [[nodiscard]] std::size_t part(std::size_t record) const { return batch_.part(record); }
  [[nodiscard]] Offset offset(std::size_t record) const { return batch_.offset(record); }

  // Whether the logs of its partitions are those that their rows know (PositionMemory).
  tl::expected<void, OutputError> BeforeWrite(const PositionMemory::ReadRows& read) {
    return OfItems(memory_.BeforeWrite(parts(), read));
  }

  // --- under the locks, in this order ---
  void OnLocked(std::vector<std::optional<PositionRow>> rows) { before_ = std::move(rows); }
  // What is to be said of a record that was done before; nullopt: it is new, and counts as done.
  [[nodiscard]] std::optional<WriteOutcome> DoneBefore(std::size_t record,
                                                       const WriteItem& item) const;
  // The rows to store, by their keys, all of whose new records count as done now.
  struct Change {
    const PositionKey& key;
    PositionRow row;
  };
  [[nodiscard]] std::vector<Change> Changed(std::string_view now) const;
  // --- and once it is committed ---
  // The error: it stands, but its outcomes must not be told.
  tl::expected<void, OutputError> OnCommitted();

 private:
  // `later`, which are parts, as items.
  [[nodiscard]] tl::expected<void, OutputError> OfItems(tl::expected<void, OutputError> of) const;

  PositionMemory& memory_;
  PositionBatch batch_;
  std::vector<std::optional<PositionRow>> before_;  // one a part
};

// Takes the ranges out of what is done; how many offsets of them were. 0: the row is as it was.
std::size_t TakeBack(const PositionRanges& ranges, PositionRow& row);

}  // namespace fencepost::consumer
