// The id of a record by its position, CLUSTERID/topic/partition/offset, and the aligned block of
// offsets that it lies in. Pure; any thread.
//
// A record that was a dead letter and came back (kafka.accept_replay_ids) has the id of its
// original, so a position is always read from the id, never from where the record was found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fencepost::consumer {

struct PositionId {
  std::string_view cluster;  // not empty; may hold slashes
  std::string_view topic;    // not empty; no slashes
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  bool operator==(const PositionId&) const = default;
};

// The views point into `id`. Nothing where it is not exactly what AppendPositionId writes: so two
// ids that differ are two positions.
std::optional<PositionId> ParsePositionId(std::string_view id);
void AppendPositionId(const PositionId& position, std::string& out);
std::string FormatPositionId(const PositionId& position);

// CLUSTERID/topic/partition/FIRST-LAST: the block of `size` (lock.block) offsets, aligned to it,
// that has this one. The id itself where `size` is 1. Blocks of two sizes have no name in common.
std::string BlockName(const PositionId& position, std::int64_t size);

// What the lock of a record with this id is named after: its block, where the id is a position and
// `block` is above 1, else the id.
std::string LockedId(std::string_view id, std::int64_t block);

}  // namespace fencepost::consumer
