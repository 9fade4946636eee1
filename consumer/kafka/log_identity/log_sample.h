// Samples of a partition's log: by which it is known again. Kafka knows a topic by its name. Where
// it was deleted and created again, or a partition was truncated, other records are at the same
// offsets, and librdkafka 2.0.2 knows neither topic ids nor the leader epochs of committed offsets.
// So what counts as done is stored with samples of its log: offsets in their metadata
// (log_samples.h), the ledger's rows by position in their anchors
// (consumer/outputs/ledger/position_memory.h). Values; no I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/record/failed_record.h"
#include "consumer/record/record.h"
#include "locking/base/error.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

// A record, by what tells it from another one at the same offset. A stored sample has one of the
// checksums.
struct LogSample {
  Offset offset = 0;
  std::int64_t timestamp = -1;       // ms since the Unix epoch; -1: the record has none
  std::optional<std::uint32_t> crc;  // CRC-32 of key and value; no bytes and none at all differ
  locking::ContentCrc content = 0;   // of the whole record (ContentOfRecord); 0: not known
  bool operator==(const LogSample&) const = default;
};
LogSample SampleOf(const Record& record);  // with both

// What a group's offset is committed with, for the member that continues from there.
struct CommitMetadata {
  std::optional<LogSample> sample;   // of a record below the offset
  std::vector<FailedRecord> failed;  // from the offset on, by offset; at most kMostFailed
  std::string pipeline{};            // that committed it; "": it is not told
  bool operator==(const CommitMetadata&) const = default;
};
// "fencepost1 NEXT OFFSET TIMESTAMP CRC", or "-" for the last three where there is no sample, less
// than 100 bytes; " @PIPELINE"; then for each record that failed " OFFSET:ATTEMPTS:ALONE:LAST:WHY"
// (FailedRecord, milliseconds; "!" behind WHY: its service was unavailable), less than 3,000 bytes
// in all. NEXT is the offset that it is committed with: a tool that copies the metadata to another
// offset (a mirror) takes it away. Empty where there is nothing to tell.
std::string MetadataText(const CommitMetadata& metadata, Offset next);
// Nothing where the metadata is empty, another's, or of another offset.
CommitMetadata ParseMetadata(std::string_view metadata, Offset next);
// "OFFSET:TIMESTAMP:CONTENT"
std::string AnchorText(const LogSample& sample);
std::optional<LogSample> ParseAnchor(std::string_view text);

// A partition's log as it is now, as far as it was asked for.
struct LogState {
  // The next one to be written; or less, above all that were asked. Where it is not, it is believed
  // (ShortEnds).
  Offset end = 0;
  std::vector<LogSample> records;  // those of the offsets that were asked for that are there
  // The lowest end that was found meanwhile and not believed.
  Offset shortest = std::numeric_limits<Offset>::max();
};
struct LogComparison {
  enum class Verdict : std::uint8_t {
    kSame,
    kOther,    // another record is at an offset, or the log ends before, or did and has none there
    kUnknown,  // all are deleted by now, or compacted away
  };
  Verdict verdict = Verdict::kUnknown;
  // Of kOther: by which sample, and why, in a few words.
  Offset offset = 0;
  std::string why;
};
// What both have is compared. `known`: of one log.
LogComparison CompareLog(const std::vector<LogSample>& known, const LogState& log);

// What a worker ends with where the log is another one than the group has read.
Error TopicReplaced(std::string_view group, const TopicPartition& where,
                    const LogComparison& other);

// Which partition of which cluster is to be read at which offsets, for a comparison in which
// assignment.
struct LogQuestion {
  std::string_view cluster;
  const TopicPartition& where;
  const std::vector<Offset>& offsets;
  AssignmentEpoch epoch = 0;
};
// nullopt: it is the log of another cluster, or there is none any more. An error may pass. Blocks
// for a few seconds at most, and not again for a question that was not answered then.
using ReadLog =
    std::function<tl::expected<std::optional<LogState>, Error>(const LogQuestion& question)>;

}  // namespace fencepost::consumer
