#include "consumer/kafka/source/log_fingerprint.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "locking/base/planted.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {
namespace {

constexpr std::string_view kVersion = "fencepost1 ";

uLong Add(uLong crc, const std::optional<std::string_view>& bytes) {
  const std::uint64_t size = bytes ? bytes->size() : ~std::uint64_t{0};
  std::array<Bytef, 8> prefix;
  for (std::size_t i = 0; i < prefix.size(); ++i) prefix[i] = static_cast<Bytef>(size >> (8 * i));
  crc = crc32_z(crc, prefix.data(), prefix.size());
  if (!bytes || bytes->empty()) return crc;
  return crc32_z(crc, reinterpret_cast<const Bytef*>(bytes->data()), bytes->size());
}

// The number at the front and the space behind it (but for the last one) are taken away.
template <typename T>
bool Take(std::string_view& text, T& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return true;
  if (text.front() != ' ') return false;
  text.remove_prefix(1);
  return true;
}

std::string TimeOf(const Fingerprint& fingerprint) {
  if (fingerprint.timestamp < 0) return "without a timestamp";
  return "of " + Rfc3339(std::chrono::milliseconds(fingerprint.timestamp));
}

}  // namespace

Fingerprint FingerprintOf(const Record& record) {
  const uLong crc = Add(Add(crc32_z(0, nullptr, 0), record.key), record.value);
  return Fingerprint{record.offset, record.timestamp ? record.timestamp->count() : -1,
                     static_cast<std::uint32_t>(crc)};
}

std::string FingerprintText(const Fingerprint& fingerprint, Offset next) {
  return fmt::format("{}{} {} {} {:08x}", kVersion, next, fingerprint.offset, fingerprint.timestamp,
                     fingerprint.crc);
}

std::optional<Fingerprint> ParseFingerprint(std::string_view metadata, Offset next) {
  if (!metadata.starts_with(kVersion)) return std::nullopt;
  metadata.remove_prefix(kVersion.size());
  Offset of = -1;
  Fingerprint fingerprint;
  const bool read = Take(metadata, of) && Take(metadata, fingerprint.offset) &&
                    Take(metadata, fingerprint.timestamp) && Take(metadata, fingerprint.crc, 16) &&
                    metadata.empty();
  if (!read || of != next || fingerprint.offset < 0 || fingerprint.offset >= next)
    return std::nullopt;
  return fingerprint;
}

Error TopicReplaced(std::string_view group, const TopicPartition& where, const Fingerprint& read,
                    const Fingerprint& found) {
  return Error{
      "topic_replaced",
      fmt::format("the topic was recreated or truncated: the group has read a "
                  "record {} here, and now there is another one, {}; what is below the group's "
                  "offset may never have been read",
                  TimeOf(read), TimeOf(found)),
      SourceText(where, read.offset),
      fmt::format("stop the workers and set the offsets to where the group is to go on: "
                  "kafka-consumer-groups --group {} --topic {} --reset-offsets "
                  "--to-earliest --execute",
                  group, where.topic)};
}

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

void LogFingerprints::Begin(const TopicPartition& where,
                            const std::optional<Fingerprint>& committed) {
  const std::lock_guard lock(mutex_);
  Chain& chain = chains_[where];
  chain = Chain{};
  if (!committed) return;
  chain.known = {*committed};
  chain.asking = true;
}

bool LogFingerprints::Wants(const TopicPartition& where, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const auto found = chains_.find(where);
  return found != chains_.end() && !found->second.asking && now >= found->second.due;
}

// The first record ever: nothing says that the log was another one before, and it is known at once.
std::optional<Fingerprint> LogFingerprints::Sampled(const TopicPartition& where,
                                                    const Fingerprint& read,
                                                    Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = chains_.find(where);
  if (found == chains_.end() || found->second.asking) return std::nullopt;
  Chain& chain = found->second;
  chain.due = now + kBetween;
  if (chain.known.empty() || Planted("newer_fingerprint_is_believed")) {
    chain.known = {read};
    return std::nullopt;
  }
  chain.candidate = read;
  chain.asking = true;
  return chain.known.back();
}

std::optional<Fingerprint> LogFingerprints::Answered(const TopicPartition& where,
                                                     FingerprintAnswer answer,
                                                     Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = chains_.find(where);
  if (found == chains_.end() || !found->second.asking) return std::nullopt;
  Chain& chain = found->second;
  if (answer == FingerprintAnswer::kMissing) {
    chain.known.pop_back();
    if (!chain.known.empty()) return chain.known.back();
  }
  chain.asking = false;
  if (chain.candidate) {
    Push(chain, *chain.candidate);
    chain.candidate.reset();
    chain.due = now + kBetween;
  }
  return std::nullopt;
}

// The oldest stay for offsets that have not moved for long.
void LogFingerprints::Push(Chain& chain, const Fingerprint& fingerprint) {
  if (chain.known.size() == kKept) chain.known.pop_back();
  chain.known.push_back(fingerprint);
}

void LogFingerprints::Hurry() {
  const std::lock_guard lock(mutex_);
  for (auto& [where, chain] : chains_) chain.due = {};
}

std::string LogFingerprints::TextFor(const TopicPartition& where, Offset next) {
  const std::lock_guard lock(mutex_);
  const auto found = chains_.find(where);
  if (found == chains_.end() || silent_) return "";
  std::vector<Fingerprint>& known = found->second.known;
  const auto behind = std::partition_point(
      known.begin(), known.end(), [next](const Fingerprint& one) { return one.offset < next; });
  if (behind == known.begin()) return "";
  const std::string text = FingerprintText(*std::prev(behind), next);
  // The one before it stays: a transaction that is aborted may come again with a lower offset.
  if (behind - known.begin() > 2) known.erase(known.begin(), behind - 2);
  return text;
}

void LogFingerprints::Silence() {
  const std::lock_guard lock(mutex_);
  silent_ = true;
}

}  // namespace fencepost::consumer
