// Deleting dead letters that are of no use any more. Kafka deletes records only from the beginning
// of a partition, so what may be deleted ends before the first one that has to stay. PurgePlan is
// pure; Purge talks to Kafka and the ledger, on one thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/cli/dlq/dlq_topic.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::cli {

class PurgePlan {
 public:
  struct Partition {
    std::size_t letters = 0;   // that go
    consumer::Offset end = 0;  // all before this offset go
    std::size_t behind = 0;    // that could go, but for the record at `end`
    std::string stays;         // why that record stays; empty: none does
  };

  // Records in the order of their offsets. `why`: why it stays; empty: it may go.
  void Add(const Position& at, std::string why);
  // By partition; only those that have records.
  [[nodiscard]] const std::map<std::int32_t, Partition>& partitions() const { return partitions_; }
  [[nodiscard]] std::size_t letters() const;

 private:
  std::map<std::int32_t, Partition> partitions_;
};

// Prints a line a partition to stdout. Returns how many letters were deleted (in a dry run: would
// be). Error: the ledger or the topic cannot be read (nothing was deleted), or a deletion failed.
tl::expected<std::size_t, Error> Purge(const consumer::PipelineOptions& options, LetterTopic& topic,
                                       const LetterRequest& request);

}  // namespace fencepost::cli
