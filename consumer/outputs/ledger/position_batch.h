// The records of a batch by the partitions that their ids name, in the order in which every writer
// locks the rows of those partitions. Keeps its memory from batch to batch. One thread.
//
// The id counts, not where the record was read: a dead letter that came back has the id of its
// original. The offset where it was read is done together with it, or each of them would leave a
// hole between ranges.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "consumer/outputs/ledger/position_ranges.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/record/position_id.h"

namespace fencepost::consumer {

// A row of fencepost_positions, but for the pipeline.
struct PositionKey {
  std::string cluster;
  TopicPartition where;
  static PositionKey Of(const PositionId& id) {
    return {std::string(id.cluster), {std::string(id.topic), id.partition}};
  }
  auto operator<=>(const PositionKey&) const = default;
};

// What the ids of its positions begin with, up to the last slash.
std::string PositionPrefix(const PositionKey& key);

// Some of the records of one partition.
struct PositionPart {
  PositionKey key;
  PositionRanges ranges;  // their offsets, with the gaps before them, and where replays
                          // were read
  locking::Token token;   // the greatest
  // Of those that were read where their id says.
  std::optional<LogSample> oldest;
  std::optional<LogSample> newest;
  AssignmentEpoch epoch = std::numeric_limits<AssignmentEpoch>::max();  // the least of these
  Offset start = 0;  // where the group went on (WriteItem)
};

// By partition, sorted by their keys; `places`: which of them each id is in, by their order.
struct PositionLookup {
  struct Place {
    std::size_t part = 0;
    Offset offset = 0;
  };
  std::vector<PositionPart> parts;
  std::vector<std::optional<Place>> places;  // nullopt: the id is no position, and so unknown
};
PositionLookup ByPartition(const std::vector<std::string>& ids);
// All offsets from that of `first` to `last`.
PositionPart PartOf(const PositionId& first, Offset last);

class PositionBatch {
 public:
  // Whether the ids of all are positions, but for those of dead letters. Else those without one get
  // kBadRecord in `outcomes`, and the others kNotWritten.
  static bool AllArePositions(const std::vector<WriteItem>& items,
                              std::vector<WriteOutcome>& outcomes);
  // All of `rows`, whose ids are positions.
  void Fill(const BatchRows& rows);
  [[nodiscard]] const std::vector<PositionPart>& parts() const { return parts_; }
  // Of a record of the rows.
  [[nodiscard]] std::size_t part(std::size_t record) const { return places_[record].part; }
  [[nodiscard]] Offset offset(std::size_t record) const { return places_[record].offset; }
  // It was read elsewhere than its id says.
  [[nodiscard]] bool replay(std::size_t record) const { return replays_[record]; }
  // The items that change any of these parts: by their ids, or by where they were read.
  [[nodiscard]] std::vector<std::size_t> ItemsOf(const std::vector<std::size_t>& parts) const;

 private:
  std::vector<PositionPart> parts_;
  std::vector<PositionLookup::Place> places_;
  std::vector<bool> replays_;         // by record
  std::vector<std::size_t> read_in_;  // by record: the part of where it was read
  std::vector<std::size_t> items_;    // by record
};

}  // namespace fencepost::consumer
