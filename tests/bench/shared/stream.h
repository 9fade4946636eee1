// The records of one run: in a topic of their own, all there, and not to be seen by anybody before
// Open. They are written in a Kafka transaction, so that its commit is the start.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/servers.h"

namespace fencepost::bench {

// {"order_id":"o-…","amount":…,"note":"xxx…"}, so long in all, but at least what the first two
// need.
std::string RecordValue(std::int64_t number, std::int64_t amount, std::size_t bytes);

struct StreamOptions {
  std::string topic;
  int partitions = 12;
  std::int64_t records = 0;
  std::size_t bytes = 256;  // of a value
  // Which order record n is of, and where it lies; equal orders have equal records. Default: n, on
  // the partitions by turns.
  struct Place {
    std::int64_t order;
    std::int32_t partition;
  };
  std::function<Place(std::int64_t n)> place{};
  std::function<std::string(std::int64_t n, std::string value)> value{};  // instead of the usual
};

class Stream {
 public:
  Stream(testing::KafkaBroker& kafka, StreamOptions options);
  ~Stream();  // deletes the topic
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Open() { producer_.Commit(); }
  [[nodiscard]] const StreamOptions& options() const { return options_; }
  [[nodiscard]] const std::string& topic() const { return options_.topic; }
  // The group has committed the end of all partitions.
  [[nodiscard]] bool CommittedBy(const std::string& group) const;

 private:
  testing::KafkaBroker& kafka_;
  const StreamOptions options_;
  testing::TestProducer producer_;
  std::vector<std::int64_t> ends_;
};

}  // namespace fencepost::bench
