// What a worker ends with where its group's offset is not in the partition.
#pragma once

#include <optional>
#include <string_view>

#include "consumer/record/record.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

struct LogBounds {
  Offset first = 0;  // the oldest offset that is kept
  Offset end = 0;    // the next one to be written
};
// `log`: nullopt where it is not known.
Error OffsetOutOfRange(std::string_view group, const TopicPartition& where, Offset offset,
                       const std::optional<LogBounds>& log);
// The same of a worker that was frozen or cut off for longer than its session, and does not know
// yet that the partition is another's: the group's offset, `committed`, is beyond its own. An error
// about the old position would set the group back to records that it has processed.
Error PartitionTakenOver(std::string_view group, const TopicPartition& where, Offset offset,
                         Offset committed);

}  // namespace fencepost::consumer
