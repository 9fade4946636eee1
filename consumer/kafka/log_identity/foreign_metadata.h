// What other programs have left with a group's offsets. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fencepost::consumer {

// There is some, and no version of ours has written it (MetadataText).
bool IsForeignMetadata(std::string_view metadata);

// Of Confluent's parallel-consumer. It finishes records out of order: it commits the lowest offset
// that is unfinished, and which behind it are finished, as bits or as run lengths in base64.
struct FinishedBehind {
  std::optional<std::int64_t> records;  // nullopt: they are compressed, and not counted
};
// nullopt: the metadata is another's.
std::optional<FinishedBehind> ParseParallelConsumer(std::string_view metadata);

}  // namespace fencepost::consumer
