// Whether a partition is still the log that the group has read. Kafka keeps a group's offset by the
// topic's name: where the topic was deleted and created anew, or a partition was cut short, and is
// longer than the offset again, reading goes on at the offset, and what is below is never read.
// librdkafka 2.0.2 knows neither topic ids nor the leader epochs of committed offsets.
//
// So a record that was read, the witness, is read again now and then, apart from the group
// (WitnessReader). Another record in its place: another log. The chain: a newer record becomes the
// witness only after the one before it was found unchanged, and was itself read before that. And
// each offset is committed with a witness in its metadata, for the member that continues from
// there.
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

namespace fencepost::consumer {

struct Witness {
  Offset offset = 0;
  std::int64_t timestamp = -1;  // ms since the Unix epoch; -1: the record has none
  std::uint32_t crc = 0;        // CRC-32 of key and value; no bytes and none at all differ
  bool operator==(const Witness&) const = default;
};
Witness WitnessOf(const Record& record);

// "fencepost1 NEXT OFFSET TIMESTAMP CRC", less than 100 bytes. NEXT is the offset that it is
// committed with: a tool that copies the metadata to another offset (a mirror) takes it away.
std::string WitnessText(const Witness& witness, Offset next);
// Nothing where the metadata is empty, another's, or of another offset.
std::optional<Witness> ReadWitness(std::string_view metadata, Offset next);

// What reading a witness again came to.
enum class WitnessAnswer : std::uint8_t {
  kSame,
  kOther,    // another record stands at its offset
  kNothing,  // deleted by now, or compacted away: it cannot tell anything
};

// The witnesses of one assignment. The Kafka thread moves them on; any thread may ask for the text
// of a commit. At most kKept of each partition are kept.
class WitnessBook {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kKept = 4;
  static constexpr std::chrono::seconds kBetween{10};  // questions of one partition, at least

  // `committed`: the witness that came with the offset; it is to be asked for.
  void Begin(const TopicPartition& where, const std::optional<Witness>& committed);
  // The next record that is read is wanted: Sampled takes it.
  [[nodiscard]] bool Wants(const TopicPartition& where, Clock::time_point now) const;
  // What is to be asked now, if anything.
  std::optional<Witness> Sampled(const TopicPartition& where, const Witness& read,
                                 Clock::time_point now);
  // To the question that was given out last, kSame or kNothing. What is to be asked next, if
  // anything: an older witness, where a newer one could not tell.
  std::optional<Witness> Answered(const TopicPartition& where, WitnessAnswer answer,
                                  Clock::time_point now);
  // All are wanted as soon as may be: something may have happened to the topics.
  void Hurry();

  // The metadata to commit this offset with; empty where no witness below it is known.
  std::string TextFor(const TopicPartition& where, Offset next);
  // The brokers take no metadata of this length: from now on there is none.
  void Silence();

 private:
  struct Chain {
    std::vector<Witness> known;  // by offset; the last is the newest
    std::optional<Witness> candidate;
    bool asking = false;
    Clock::time_point due;
  };
  static void Push(Chain& chain, const Witness& witness);

  mutable std::mutex mutex_;
  std::map<TopicPartition, Chain> chains_;
  bool silent_ = false;
};

}  // namespace fencepost::consumer
