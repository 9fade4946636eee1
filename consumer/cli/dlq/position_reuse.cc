#include "consumer/cli/dlq/position_reuse.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/client/topic_reader.h"
#include "consumer/record/position_id.h"

namespace fencepost::cli {

using consumer::Offset;
using consumer::PartitionRange;
using consumer::TopicPartition;
using consumer::TopicReader;
using consumer::TopicRecord;

namespace {

constexpr std::chrono::seconds kReuseLimit{30};
constexpr Offset kMostBetween = 1000;  // offsets between two letters that are read along

using Places = std::multimap<Offset, std::size_t>;  // letters by their offsets

class Reuse {
 public:
  Reuse(TopicReader& reader, const std::vector<StoredLetter>& letters)
      : reader_(reader), letters_(letters), found_(letters.size()) {}

  // Of one topic.
  tl::expected<void, Error> Look(const std::string& topic,
                                 const std::map<std::int32_t, Places>& partitions) {
    const auto ranges = reader_.Ranges(topic, kReuseLimit);
    if (!ranges && ranges.error().code == "unknown_topic") return {};
    if (!ranges) return tl::unexpected(ranges.error());
    for (const auto& [partition, places] : partitions) {
      PartitionRange range{{topic, partition}, 0, 0};
      if (std::cmp_less(partition, ranges->size())) range = (*ranges)[partition];
      const auto end = places.lower_bound(range.end);
      for (auto at = end; at != places.end(); ++at) {
        found_[at->second] = fmt::format("the log of {}/{} ends before it", topic, partition);
      }
      for (auto from = places.lower_bound(range.first); from != end;) {
        auto to = std::next(from);
        while (to != end && to->first - std::prev(to)->first <= kMostBetween) ++to;
        range.first = from->first;
        range.end = std::prev(to)->first + 1;
        const auto compare = [&](const TopicRecord& record) {
          const auto [begin, behind] = places.equal_range(record.record.offset);
          for (auto at = begin; at != behind; ++at) Compare(record, at->second);
          return true;
        };
        if (auto read = reader_.Read({range}, compare, kReuseLimit); !read) return read;
        from = to;
      }
    }
    return {};
  }
  std::vector<std::string> Take() { return std::move(found_); }

 private:
  void Compare(const TopicRecord& there, std::size_t letter) {
    const consumer::Record& own = letters_[letter].stored.record;
    if (there.record.key == own.key && there.record.value == own.value) return;
    found_[letter] = fmt::format("{}/{}/{} is another record by now", there.where.topic,
                                 there.where.partition, there.record.offset);
  }

  TopicReader& reader_;
  const std::vector<StoredLetter>& letters_;
  std::vector<std::string> found_;
};

}  // namespace

tl::expected<std::vector<std::string>, Error> FindReuse(const consumer::PipelineOptions& options,
                                                        const std::vector<StoredLetter>& letters) {
  std::vector<std::string> none(letters.size());
  if (!options.identity.ByPosition() || letters.empty()) return none;
  const auto reader = TopicReader::Make(options.kafka);
  if (!reader) return tl::unexpected(reader.error());
  const auto cluster = (*reader)->ClusterId(kReuseLimit);
  if (!cluster) return tl::unexpected(cluster.error());
  std::map<std::string, std::map<std::int32_t, Places>> topics;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto id = consumer::ParsePositionId(letters[i].record_id);
    if (!id || id->cluster != *cluster) continue;
    topics[std::string(id->topic)][id->partition].emplace(id->offset, i);
  }
  Reuse reuse(**reader, letters);
  for (const auto& [topic, partitions] : topics) {
    if (auto looked = reuse.Look(topic, partitions); !looked) {
      return tl::unexpected(looked.error());
    }
  }
  return reuse.Take();
}

}  // namespace fencepost::cli
