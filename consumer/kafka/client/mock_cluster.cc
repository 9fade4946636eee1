#include "consumer/kafka/client/mock_cluster.h"

#include "consumer/kafka/client/rdkafka_holders.h"
// After rdkafka.h, which it needs.
#include <librdkafka/rdkafka_mock.h>

#include <sstream>
#include <utility>

namespace fencepost::consumer {

struct MockCluster::Handles {
  rdkafka::Handle owner;  // only keeps the cluster
  rdkafka::Holder<rd_kafka_mock_cluster_t, &rd_kafka_mock_cluster_destroy> cluster;
};

MockCluster::MockCluster(std::unique_ptr<Handles> handles) : handles_(std::move(handles)) {}
MockCluster::~MockCluster() = default;

tl::expected<std::unique_ptr<MockCluster>, Error> MockCluster::Make() {
  char why[512];
  rdkafka::Conf conf(rd_kafka_conf_new());
  rd_kafka_conf_set(conf.get(), "log_level", "3", nullptr, 0);
  auto handles = std::make_unique<Handles>();
  handles->owner.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), why, sizeof(why)));
  if (!handles->owner) return tl::unexpected(Error{"mock_cluster", why, "", ""});
  (void)conf.release();
  handles->cluster.reset(rd_kafka_mock_cluster_new(handles->owner.get(), 1));
  if (!handles->cluster) {
    return tl::unexpected(Error{"mock_cluster", "the mock cluster did not start", "", ""});
  }
  return std::unique_ptr<MockCluster>(new MockCluster(std::move(handles)));
}

std::vector<std::string> MockCluster::brokers() const {
  std::istringstream list(rd_kafka_mock_cluster_bootstraps(handles_->cluster.get()));
  std::vector<std::string> result;
  for (std::string one; std::getline(list, one, ',');) result.push_back(one);
  return result;
}

tl::expected<void, Error> MockCluster::CreateTopic(const std::string& topic, int partitions) {
  const auto error =
      rd_kafka_mock_topic_create(handles_->cluster.get(), topic.c_str(), partitions, 1);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return tl::unexpected(Error{"create_topic", rd_kafka_err2str(error), topic, ""});
}

rd_kafka_mock_cluster_s* MockCluster::cluster() const { return handles_->cluster.get(); }

}  // namespace fencepost::consumer
