#include "tests/bench/shared/stream.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace fencepost::bench {
namespace {

constexpr std::size_t kFlushBytes = 8u << 20;  // the producer's queue is bounded

StreamOptions::Place ByTurns(const StreamOptions& options, std::int64_t n) {
  return options.place ? options.place(n)
                       : StreamOptions::Place{n, static_cast<std::int32_t>(n % options.partitions)};
}

}  // namespace

std::string RecordValue(std::int64_t number, std::int64_t amount, std::size_t bytes) {
  std::string value =
      fmt::format(R"({{"order_id":"o-{:010}","amount":{},"note":")", number, amount);
  if (value.size() + 2 < bytes) value.append(bytes - value.size() - 2, 'x');
  return value + "\"}";
}

Stream::Stream(testing::KafkaBroker& kafka, StreamOptions options)
    : kafka_(kafka),
      options_(std::move(options)),
      producer_((kafka.CreateTopic(options_.topic, options_.partitions), kafka.bootstrap()),
                "fill-" + options_.topic,
                {{"transaction.timeout.ms", "600000"}, {"message.max.bytes", "2000000"}}),
      ends_(static_cast<std::size_t>(options_.partitions)) {
  producer_.Begin();
  std::size_t unflushed = 0;
  for (std::int64_t n = 0; n < options_.records; ++n) {
    const StreamOptions::Place place = ByTurns(options_, n);
    std::string value = RecordValue(place.order, place.order % 1000, options_.bytes);
    if (options_.value) value = options_.value(n, std::move(value));
    unflushed += value.size();
    producer_.Send(options_.topic, place.partition, fmt::format("{}", place.order),
                   std::move(value));
    ++ends_.at(static_cast<std::size_t>(place.partition));
    if (unflushed < kFlushBytes) continue;
    producer_.Flush();
    unflushed = 0;
  }
  producer_.Flush();
}

Stream::~Stream() { kafka_.admin().DeleteTopic(options_.topic); }

bool Stream::CommittedBy(const std::string& group) const {
  const auto committed = kafka_.admin().CommittedOffsets(group, options_.topic);
  return std::equal(committed.begin(), committed.end(), ends_.begin(), ends_.end(),
                    [](std::int64_t offset, std::int64_t end) { return offset >= end; });
}

}  // namespace fencepost::bench
