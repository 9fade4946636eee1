#include "consumer/cli/tables/topic_sample.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "consumer/cli/shared/pure_handler.h"
#include "consumer/decode/registry/registry_decoder.h"
#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/topic_reader.h"
#include "consumer/outputs/rows/item_values.h"
#include "consumer/pipeline/read_topics.h"
#include "consumer/worker/worker_parts.h"

namespace fencepost::cli {
namespace {

using consumer::PartitionRange;
using consumer::TopicRecord;

constexpr consumer::Millis kSampleLimit{10'000};

// The newest of each partition, as evenly as their number goes.
tl::expected<std::vector<PartitionRange>, Error> NewestOf(consumer::TopicReader& reader,
                                                          const std::vector<std::string>& topics,
                                                          std::size_t most) {
  std::vector<PartitionRange> all;
  for (const std::string& topic : topics) {
    auto ranges = reader.Ranges(topic, kSampleLimit);
    if (!ranges) return tl::unexpected(ranges.error());
    std::ranges::copy_if(*ranges, std::back_inserter(all),
                         [](const PartitionRange& range) { return range.end > range.first; });
  }
  if (all.empty()) return all;
  const auto each = static_cast<consumer::Offset>((most + all.size() - 1) / all.size());
  for (PartitionRange& range : all) range.first = std::max(range.first, range.end - each);
  return all;
}

// Reads a record as an output would get it.
class Reading {
 public:
  Reading(const consumer::PipelineOptions& options, std::vector<consumer::WantedTable>& tables)
      : options_(options),
        decoder_(consumer::MakeRecordDecoder(options.kafka.decode)),
        sampler_(tables, consumer::MakeRecordFilter) {
    if (auto filter = consumer::MakeRecordFilter(options.filter)) filter_ = std::move(*filter);
    sample_.without_handler = options.handler.outside();
  }

  // Error: its schema does not come.
  tl::expected<void, Error> Add(TopicRecord one) {
    if (decoder_ != nullptr) {
      const auto decoded = consumer::DecodeNow(*decoder_, one.record, kSampleLimit);
      if (!decoded) return tl::unexpected(Error{"no_schema", decoded.error(), "", ""});
    }
    if (filter_ != nullptr) {
      Filter(*filter_, options_.identity.accept_replay_ids, one.where, one.record);
    }
    if (one.record.filtered || !one.record.problem.empty()) return {};
    consumer::WriteItem item{.record = &one.record, .where = &one.where};
    const auto made = AskPureHandler(
        options_,
        {.record = one.record, .where = one.where, .timeout = options_.processing.timeout});
    if (made && !*made) return {};  // it refuses the record
    if (made) item.values = &**made;
    ++sample_.records;
    for (std::size_t i = 0; i < CountValues(item); ++i) {
      const consumer::ItemValue value = ValueOf(item, i);
      sampler_.Add(ContextOf(item, "", value), !options_.handler.any() || made);
    }
    return {};
  }
  TopicSample Finish() {
    sampler_.Finish();
    return sample_;
  }

 private:
  const consumer::PipelineOptions& options_;
  const std::unique_ptr<consumer::RecordDecoder> decoder_;
  std::unique_ptr<consumer::RecordFilter> filter_;
  consumer::Sampler sampler_;
  TopicSample sample_;
};

}  // namespace

tl::expected<std::vector<std::string>, Error> TopicsOf(const consumer::KafkaOptions& kafka) {
  const consumer::ReadTopics read(kafka.topics);
  std::vector<std::string> names = read.names();
  if (read.pattern().empty()) return names;
  const auto admin = consumer::KafkaAdmin::Make(kafka);
  if (!admin) return tl::unexpected(admin.error());
  const auto known = (*admin)->Topics(read, kSampleLimit);
  if (!known) return tl::unexpected(known.error());
  names.clear();
  for (const consumer::KnownTopic& topic : *known) names.push_back(topic.name);
  return names;
}

tl::expected<TopicSample, Error> SampleTopics(const consumer::PipelineOptions& options,
                                              const std::vector<std::string>& topics,
                                              std::size_t most,
                                              std::vector<consumer::WantedTable>& tables) {
  const auto reader = consumer::TopicReader::Make(options.kafka);
  if (!reader) return tl::unexpected(reader.error());
  const auto ranges = NewestOf(**reader, topics, most);
  if (!ranges) return tl::unexpected(ranges.error());
  Reading reading(options, tables);
  tl::expected<void, Error> added;
  std::size_t left = most;
  const auto visit = [&](const TopicRecord& one) {
    added = reading.Add(one);
    return added && --left > 0;
  };
  if (!ranges->empty()) {
    if (auto read = (*reader)->Read(*ranges, visit, kSampleLimit); !read) {
      return tl::unexpected(read.error());
    }
  }
  if (!added) return tl::unexpected(added.error());
  return reading.Finish();
}

}  // namespace fencepost::cli
