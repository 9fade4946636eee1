#include "consumer/kafka/log_identity/log_sample.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "consumer/record/content.h"
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

// The number at the front, and what separates it from the next one, are taken away.
template <typename T>
bool Take(std::string_view& text, char separator, T& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return true;
  if (text.front() != separator) return false;
  text.remove_prefix(1);
  return true;
}

bool TakeSample(std::string_view& text, Offset next, std::optional<LogSample>& sample) {
  if (text.starts_with("- ")) {
    text.remove_prefix(2);
    return true;
  }
  LogSample& read = sample.emplace();
  return Take(text, ' ', read.offset) && Take(text, ' ', read.timestamp) &&
         Take(text, ' ', read.crc.emplace(), 16) && read.offset >= 0 && read.offset < next;
}

bool IsPlain(std::string_view text, std::size_t most) {
  return text.size() <= most && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}
// One that is longer, or has other characters, is a program's own.
bool IsPlainClass(std::string_view text) {
  constexpr std::size_t kMostBytes = 20;
  return IsPlain(text, kMostBytes);
}

bool TakePipeline(std::string_view& text, std::string& name) {
  constexpr std::size_t kMostBytes = 63;
  if (!text.starts_with('@')) return true;
  name = text.substr(1, text.find(' ') - 1);
  text.remove_prefix(std::min(text.size(), name.size() + 2));
  return IsPlain(name, kMostBytes);
}

// What no worker writes is refused, so that it cannot overflow where it is reckoned with.
bool TakeFailed(std::string_view& text, FailedRecord& read) {
  constexpr int kMostAttempts = 1'000'000'000;
  constexpr std::int64_t kLongest = std::int64_t{100} * 366 * 24 * 3600 * 1000;
  std::string_view one = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), one.size() + 1));
  std::int64_t alone = 0;
  std::int64_t last = 0;
  const bool taken = Take(one, ':', read.offset) && Take(one, ':', read.attempts) &&
                     Take(one, ':', alone) && Take(one, ':', last);
  read.alone = Millis(alone);
  read.last = Millis(last);
  read.unavailable = one.ends_with('!');
  if (read.unavailable) one.remove_suffix(1);
  read.why = one;
  return taken && read.offset >= 0 && read.attempts >= 0 && read.attempts <= kMostAttempts &&
         alone >= 0 && alone <= kLongest && last >= 0 && IsPlainClass(one);
}

bool IsSame(const LogSample& a, const LogSample& b) {
  return a.timestamp == b.timestamp && (!a.crc || !b.crc || a.crc == b.crc) &&
         !locking::IsOtherContent(a.content, b.content);
}

std::string TimeOf(const LogSample& sample) {
  if (sample.timestamp < 0) return "without a timestamp";
  return "of " + Rfc3339(std::chrono::milliseconds(sample.timestamp));
}

}  // namespace

LogSample SampleOf(const Record& record) {
  const uLong crc = Add(Add(crc32_z(0, nullptr, 0), record.key), record.value);
  return {.offset = record.offset,
          .timestamp = record.timestamp ? record.timestamp->count() : -1,
          .crc = static_cast<std::uint32_t>(crc),
          .content = ContentOfRecord(record)};
}

std::string MetadataText(const CommitMetadata& metadata, Offset next) {
  const auto& [sample, failed, pipeline] = metadata;
  if (!sample && failed.empty()) return "";
  std::string text = fmt::format("{}{} ", kVersion, next);
  text += sample ? fmt::format("{} {} {:08x}", sample->offset, sample->timestamp,
                               sample->crc.value_or(0))
                 : "-";
  if (!pipeline.empty()) text += " @" + pipeline;
  for (const FailedRecord& one : failed) {
    text += fmt::format(" {}:{}:{}:{}:{}{}", one.offset, one.attempts, one.alone.count(),
                        one.last.count(), IsPlainClass(one.why) ? one.why : "",
                        one.unavailable ? "!" : "");
  }
  return text;
}

CommitMetadata ParseMetadata(std::string_view metadata, Offset next) {
  if (!metadata.starts_with(kVersion)) return {};
  metadata.remove_prefix(kVersion.size());
  CommitMetadata read;
  Offset of = -1;
  if (!Take(metadata, ' ', of) || of != next || !TakeSample(metadata, next, read.sample) ||
      !TakePipeline(metadata, read.pipeline)) {
    return {};
  }
  while (!metadata.empty()) {
    FailedRecord one;
    if (!TakeFailed(metadata, one) || read.failed.size() == kMostFailed) return {};
    if (one.offset >= next) read.failed.push_back(one);
  }
  return read;
}

std::string AnchorText(const LogSample& sample) {
  return fmt::format("{}:{}:{}", sample.offset, sample.timestamp, sample.content);
}

std::optional<LogSample> ParseAnchor(std::string_view text) {
  LogSample sample;
  const bool read = Take(text, ':', sample.offset) && Take(text, ':', sample.timestamp) &&
                    Take(text, ':', sample.content) && text.empty();
  return read ? std::optional(sample) : std::nullopt;
}

LogComparison CompareLog(const std::vector<LogSample>& known, const LogState& log) {
  using Verdict = LogComparison::Verdict;
  LogComparison result;
  for (const LogSample& one : known) {
    const auto found = std::ranges::find(log.records, one.offset, &LogSample::offset);
    // One that grew meanwhile, and has no record here, may have been another from the beginning.
    const Offset end = found == log.records.end() ? std::min(log.end, log.shortest) : log.end;
    if (one.offset >= end) {
      return {Verdict::kOther, one.offset,
              fmt::format("it {} at offset {}, and a record {} was read behind that",
                          end < log.end ? "ended" : "ends", end, TimeOf(one))};
    }
    if (found == log.records.end()) continue;
    result.verdict = Verdict::kSame;
    if (IsSame(one, *found)) continue;
    return {Verdict::kOther, one.offset,
            fmt::format("a record {} was read here, and now there is another one, {}", TimeOf(one),
                        TimeOf(*found))};
  }
  return result;
}

Error TopicReplaced(std::string_view group, const TopicPartition& where,
                    const LogComparison& other) {
  return Error{
      "topic_replaced",
      fmt::format("the topic was recreated or truncated: {}; records of the new log may never have "
                  "been read, or may have taken effect before this was found",
                  other.why),
      SourceText(where, other.offset),
      fmt::format(
          "stop the workers, set the partition's offset to where the group is to go on "
          "(kafka-consumer-groups --group {0} --topic {1}:{2} --reset-offsets "
          "--to-earliest --execute; each other partition that was recreated is told at "
          "the next start); and where ids are positions, take back what the ledger has as done "
          "(fencepost forget FILE --topic {1} --partition {2} --from 0 --to {3} "
          "--execute) or give the pipeline another name",
          group, where.topic, where.partition, std::numeric_limits<Offset>::max())};
}

}  // namespace fencepost::consumer
