// Whether a partition is still the log that the group has read. Kafka keeps a group's offset by the
// topic's name. Where the topic was deleted and created again, or a partition was truncated, and
// has grown past the offset, reading goes on at the offset, and what is below is never read.
// librdkafka 2.0.2 knows neither topic ids nor the leader epochs of committed offsets.
//
// So the log is known by fingerprints: offset, timestamp and checksum of single records that were
// read. Such a record is read again now and then, by a consumer apart from the group
// (fingerprint_reader.h); another record at its offset means another log. A newer fingerprint takes
// the place of an older one only after the older one was found unchanged, and if its record was
// read before that. Each offset is committed with a fingerprint in its metadata, for the member
// that continues from there.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/record/record.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

struct Fingerprint {
  Offset offset = 0;
  std::int64_t timestamp = -1;  // ms since the Unix epoch; -1: the record has none
  std::uint32_t crc = 0;        // CRC-32 of key and value; no bytes and none at all differ
  bool operator==(const Fingerprint&) const = default;
};
Fingerprint FingerprintOf(const Record& record);

// "fencepost1 NEXT OFFSET TIMESTAMP CRC", less than 100 bytes. NEXT is the offset that it is
// committed with: a tool that copies the metadata to another offset (a mirror) takes it away.
std::string FingerprintText(const Fingerprint& fingerprint, Offset next);
// Nothing where the metadata is empty, another's, or of another offset.
std::optional<Fingerprint> ParseFingerprint(std::string_view metadata, Offset next);

// What a worker ends with where the log is not the one that its group has read, or where its
// group's offset is not in it; `log`: what is, where that is known.
Error TopicReplaced(std::string_view group, const TopicPartition& where, const Fingerprint& read,
                    const Fingerprint& found);
struct LogBounds {
  Offset first = 0;  // the oldest offset that is kept
  Offset end = 0;    // the next one to be written
};
Error OffsetOutOfRange(std::string_view group, const TopicPartition& where, Offset offset,
                       const std::optional<LogBounds>& log);
// The same of a worker that was frozen or cut off for longer than its session, and has not heard
// yet that the partition is another's: the group's offset, `committed`, is beyond its own. Whoever
// set the group's offset by a word about an old position would have the group do again what it has
// done.
Error PartitionTakenOver(std::string_view group, const TopicPartition& where, Offset offset,
                         Offset committed);

// What was found at the offset of a fingerprint.
enum class FingerprintAnswer : std::uint8_t {
  kSame,
  kDifferent,  // another record is at its offset
  kMissing,    // deleted by now, or compacted away: it cannot tell anything
};

// The fingerprints of one assignment. The Kafka thread moves them on; any thread may ask for the
// text of a commit. At most kKept of each partition are kept.
class LogFingerprints {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kKept = 4;
  static constexpr std::chrono::seconds kBetween{10};  // questions of one partition, at least

  // `committed`: the fingerprint that came with the offset; it is to be asked for.
  void Begin(const TopicPartition& where, const std::optional<Fingerprint>& committed);
  // The next record that is read is wanted: Sampled takes it.
  [[nodiscard]] bool Wants(const TopicPartition& where, Clock::time_point now) const;
  // What is to be asked now, if anything.
  std::optional<Fingerprint> Sampled(const TopicPartition& where, const Fingerprint& read,
                                     Clock::time_point now);
  // To the question that was given out last, kSame or kMissing. What is to be asked next, if
  // anything: an older fingerprint, where a newer one could not tell.
  std::optional<Fingerprint> Answered(const TopicPartition& where, FingerprintAnswer answer,
                                      Clock::time_point now);
  // All are wanted as soon as may be: something may have happened to the topics.
  void Hurry();

  // The metadata to commit this offset with; empty where no fingerprint below it is known.
  std::string TextFor(const TopicPartition& where, Offset next);
  // The brokers take no metadata of this length: from now on there is none.
  void Silence();

 private:
  struct Chain {
    std::vector<Fingerprint> known;  // by offset; the last is the newest
    std::optional<Fingerprint> candidate;
    bool asking = false;
    Clock::time_point due;
  };
  static void Push(Chain& chain, const Fingerprint& fingerprint);

  mutable std::mutex mutex_;
  std::map<TopicPartition, Chain> chains_;
  bool silent_ = false;
};

}  // namespace fencepost::consumer
