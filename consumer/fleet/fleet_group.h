// What Kafka says of a pipeline's group: its members, and how many partitions its topics have. One
// thread; each call blocks for `limit` at most.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/admin.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

class FleetGroup {
 public:
  explicit FleetGroup(const PipelineOptions& pipeline)
      : pipeline_(pipeline.name), kafka_(pipeline.kafka) {}

  [[nodiscard]] const std::string& pipeline() const { return pipeline_; }
  [[nodiscard]] const std::string& name() const { return kafka_.group; }
  tl::expected<std::vector<KafkaAdmin::Member>, Error> Members(Millis limit);
  // By topic; as they were ten seconds ago, at most.
  tl::expected<std::map<std::string, int>, Error> Topics(Millis limit);

 private:
  tl::expected<KafkaAdmin*, Error> Admin();

  const std::string pipeline_;
  const KafkaOptions kafka_;
  std::unique_ptr<KafkaAdmin> admin_;
  std::map<std::string, int> topics_;
  std::chrono::steady_clock::time_point made_, topics_at_;  // admin_, topics_
};

}  // namespace fencepost::consumer
