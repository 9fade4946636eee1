#include "consumer/fleet/fleet_group.h"

#include <utility>

namespace fencepost::consumer {
namespace {

using std::chrono::steady_clock;

// Then its client is made again, with the secrets as they are by then.
constexpr std::chrono::minutes kClientFor{1};
// By a pattern the question is about all topics of the cluster.
constexpr std::chrono::seconds kTopicsFor{10};

}  // namespace

tl::expected<KafkaAdmin*, Error> FleetGroup::Admin() {
  const auto now = steady_clock::now();
  if (admin_ != nullptr && now - made_ < kClientFor) return admin_.get();
  admin_.reset();
  auto made = KafkaAdmin::Make(kafka_);
  if (!made) return tl::unexpected(made.error());
  admin_ = std::move(*made);
  made_ = now;
  return admin_.get();
}

tl::expected<std::vector<KafkaAdmin::Member>, Error> FleetGroup::Members(Millis limit) {
  const auto admin = Admin();
  if (!admin) return tl::unexpected(admin.error());
  auto members = (*admin)->Members(kafka_.group, limit);
  if (!members) admin_.reset();
  return members;
}

tl::expected<std::map<std::string, int>, Error> FleetGroup::Topics(Millis limit) {
  const auto now = steady_clock::now();
  if (!topics_.empty() && now - topics_at_ < kTopicsFor) return topics_;
  const auto admin = Admin();
  if (!admin) return tl::unexpected(admin.error());
  const auto topics = (*admin)->Topics(kafka_.topics, limit);
  if (!topics) return tl::unexpected(topics.error());
  topics_.clear();
  for (const KnownTopic& topic : *topics) topics_[topic.name] = topic.partitions;
  topics_at_ = now;
  return topics_;
}

}  // namespace fencepost::consumer
