// A record as it came from Kafka, and where it is. Values; views stay good as long as the owner
// lives.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost::consumer {

using Millis = std::chrono::milliseconds;
using Nanos = std::chrono::nanoseconds;

using Offset = std::int64_t;

// A partition by the number that the source gave its (topic, partition) pair; stable in a process.
using PartitionIndex = std::uint32_t;

struct TopicPartition {
  std::string topic;
  std::int32_t partition = 0;
  auto operator<=>(const TopicPartition&) const = default;
};

// One assignment of a partition to this worker. Records and commits of another epoch are stale.
using AssignmentEpoch = std::uint64_t;

struct HeaderView {
  std::string_view name;
  std::optional<std::string_view> value;
};

// What was decoded (kafka.decode), as Kafka has it. The record's `owner` keeps the views good.
struct Encoded {
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
};

struct Record {
  PartitionIndex partition = 0;
  AssignmentEpoch epoch = 0;
  Offset offset = 0;
  // So many offsets directly before it have no record for a reader of this group, and never will:
  // markers of transactions, aborted or compacted away. 0 also where it is not known. In the flow
  // the filtered ones count, too: the ranges of a ledger by position have no holes for them.
  Offset gap = 0;
  std::optional<std::chrono::milliseconds> timestamp;  // since the Unix epoch
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;  // nullopt: a tombstone
  std::vector<HeaderView> headers;
  std::shared_ptr<const Encoded> encoded;  // nullptr: key and value are as Kafka has them
  std::shared_ptr<const void> owner;       // keeps the memory behind the views, and nothing else
  bool filtered = false;                   // the pipeline is not about it (`when`)
  // Why it is bad, one line without anything of it: it cannot be decoded, and its key and value are
  // as Kafka has them; or `when` cannot be evaluated on it.
  std::string problem;

  // What it costs while it is kept: key, value, headers (names, values and their views), 64 bytes;
  // of a decoded one both forms.
  [[nodiscard]] std::size_t Bytes() const;
  // As Kafka has them, also where they were decoded.
  [[nodiscard]] std::optional<std::string_view> KafkaKey() const {
    return encoded == nullptr ? key : encoded->key;
  }
  [[nodiscard]] std::optional<std::string_view> KafkaValue() const {
    return encoded == nullptr ? value : encoded->value;
  }
};

// Where and when the record was that this one is the replay of, in the same topic.
struct ReplayOrigin {
  std::int32_t partition = 0;
  Offset offset = 0;
  std::optional<std::chrono::milliseconds> timestamp;
};

// "topic/partition/offset", as stored in the ledger's `source`.
std::string SourceText(const TopicPartition& where, Offset offset);

}  // namespace fencepost::consumer
