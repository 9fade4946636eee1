#include "consumer/cli/demo/stream.h"

#include <algorithm>

#include <fmt/format.h>

namespace fencepost::cli {
namespace {

constexpr std::uint64_t kDuplicatesPercent = 5;
constexpr std::size_t kDuplicateReach = 3000;  // how far back a duplicate's original lies at most

}  // namespace

Stream::Stream(std::string topic, int partitions, std::uint64_t seed,
               std::unique_ptr<consumer::Producer> producer)
    : topic_(std::move(topic)),
      partitions_(partitions),
      random_(seed),
      producer_(std::move(producer)) {}

tl::expected<void, Error> Stream::SendOne() {
  const bool duplicate = next_ > 100 && random_() % 100 < kDuplicatesPercent;
  const std::size_t number =
      duplicate ? next_ - 1 - random_() % std::min(next_, kDuplicateReach) : next_++;
  const std::string id = fmt::format("o-{:07}", number);
  const std::string value =
      fmt::format(R"({{"order_id":"{}","amount":{},"item":"fence post"}})", id, number % 997);
  // Half of the duplicates come by another partition, as from a second producer.
  const bool astray = duplicate && random_() % 2 == 0;
  const auto partition = static_cast<std::int32_t>((number + (astray ? 1 : 0)) %
                                                   static_cast<std::size_t>(partitions_));
  unique_.insert(id);
  ++produced_;
  return producer_->Send({.topic = topic_, .partition = partition, .key = id, .value = value});
}

tl::expected<void, Error> Stream::ProduceUpTo(std::size_t total) {
  while (produced_ < total) {
    if (auto sent = SendOne(); !sent) return sent;
  }
  return producer_->Flush(std::chrono::seconds(60));
}

}  // namespace fencepost::cli
