#include "consumer/kafka/source/offset_errors.h"

#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {

Error OffsetOutOfRange(std::string_view group, const TopicPartition& where, Offset offset,
                       const std::optional<LogBounds>& log) {
  std::string what = fmt::format("the group's offset {} is not in the partition", offset);
  std::string set = "set the offset";
  if (log && offset < log->first) {
    what = fmt::format(
        "the records from offset {} to {} were deleted before they were processed (retention, or "
        "DeleteRecords)",
        offset, log->first - 1);
    // Where this worker was frozen, the group may have read them in time, and be beyond them.
    if (!Planted("way_on_is_always_the_first")) {
      set = fmt::format("if the group's offset is below {}, set it", log->first);
    }
  } else if (log && offset > log->end) {
    what = fmt::format(
        "the group's offset {} is past the partition's end {}: the topic was recreated or "
        "truncated",
        offset, log->end);
  }
  return Error{"offset_out_of_range", std::move(what), SourceText(where, offset),
               fmt::format("if that is accepted, stop the workers and {}: "
                           "kafka-consumer-groups --group {} --topic {}:{} --reset-offsets "
                           "--to-{} --execute",
                           set, group, where.topic, where.partition,
                           Planted("way_on_is_the_end") ? "latest" : "earliest")};
}

Error PartitionTakenOver(std::string_view group, const TopicPartition& where, Offset offset,
                         Offset committed) {
  return Error{"partition_taken_over",
               fmt::format("group '{}' has gone on to offset {} without this worker, whose own "
                           "offset {} is not in the partition any more: it was frozen or cut off "
                           "for longer than its session",
                           group, committed, offset),
               SourceText(where, offset), "start the worker again"};
}

}  // namespace fencepost::consumer
