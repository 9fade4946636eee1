#include "consumer/worker/log_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/client/topic_reader.h"
#include "consumer/record/content.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kLimit{3'000};

class LogReader {
 public:
  explicit LogReader(KafkaOptions kafka) : kafka_(std::move(kafka)) {}

  tl::expected<std::optional<LogState>, Error> Read(std::string_view cluster,
                                                    const TopicPartition& where,
                                                    const std::vector<Offset>& offsets) {
    if (auto connected = Connect(); !connected) return tl::unexpected(connected.error());
    if (cluster != cluster_) return std::nullopt;
    const auto range = reader_->Range(where, kLimit);
    if (!range && IsGone(range.error(), where.topic)) return std::nullopt;
    if (!range) return tl::unexpected(range.error());
    LogState log{.first = range->first, .end = range->end, .records = {}};
    for (const Offset offset : offsets) {
      if (offset < log.first || offset >= log.end) continue;
      const auto one = reader_->ReadOne(where, offset, kLimit);
      if (!one) return tl::unexpected(one.error());
      if (*one) log.records.push_back(Known((*one)->record));
    }
    return log;
  }

 private:
  // Only a replayed dead letter names it: nothing of its log is left to compare. A topic that the
  // pipeline reads may come back.
  [[nodiscard]] bool IsGone(const Error& error, const std::string& topic) const {
    if (error.code == "unknown_partition") return true;
    return error.code == "unknown_topic" &&
           std::ranges::find(kafka_.topics, topic) == kafka_.topics.end();
  }

  tl::expected<void, Error> Connect() {
    if (reader_ == nullptr) {
      auto made = TopicReader::Make(kafka_);
      if (!made) return tl::unexpected(made.error());
      reader_ = std::move(*made);
    }
    if (!cluster_.empty()) return {};
    auto cluster = reader_->ClusterId(kLimit);
    if (!cluster) return tl::unexpected(cluster.error());
    cluster_ = std::move(*cluster);
    return {};
  }

  LogRecord Known(const Record& record) {
    return {.offset = record.offset,
            .timestamp = record.timestamp ? record.timestamp->count() : -1,
            .content = content_.Of(record, evaluator_).value_or(0)};
  }

  const KafkaOptions kafka_;
  std::unique_ptr<TopicReader> reader_;
  std::string cluster_;
  ContentDigest content_{{.kind = ContentRule::Kind::kRecord, .selectors = {}}};
  Evaluator evaluator_;  // the content of a whole record needs none of it
};

}  // namespace

ReadLog MakeLogReader(KafkaOptions kafka) {
  return [reader = std::make_shared<LogReader>(std::move(kafka))](
             std::string_view cluster, const TopicPartition& where,
             const std::vector<Offset>& offsets) { return reader->Read(cluster, where, offsets); };
}

}  // namespace fencepost::consumer
