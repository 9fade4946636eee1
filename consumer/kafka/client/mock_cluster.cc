#include "consumer/kafka/client/mock_cluster.h"

#include <sstream>

namespace fencepost::consumer {

tl::expected<std::unique_ptr<MockCluster>, Error> MockCluster::Make(int brokers) {
  char why[512];
  rdkafka::Conf conf(rd_kafka_conf_new());
  rd_kafka_conf_set(conf.get(), "log_level", "3", nullptr, 0);
  auto made = std::unique_ptr<MockCluster>(new MockCluster());
  made->owner_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), why, sizeof(why)));
  if (!made->owner_) return tl::unexpected(Error{"mock_cluster", why, "", ""});
  (void)conf.release();
  made->cluster_.reset(rd_kafka_mock_cluster_new(made->owner_.get(), brokers));
  if (!made->cluster_) {
    return tl::unexpected(Error{"mock_cluster", "the mock cluster did not start", "", ""});
  }
  return made;
}

std::vector<std::string> MockCluster::brokers() const {
  std::istringstream list(rd_kafka_mock_cluster_bootstraps(cluster()));
  std::vector<std::string> result;
  for (std::string one; std::getline(list, one, ',');) result.push_back(one);
  return result;
}

tl::expected<void, Error> MockCluster::CreateTopic(const std::string& topic, int partitions) {
  const auto error = rd_kafka_mock_topic_create(cluster(), topic.c_str(), partitions, 1);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return tl::unexpected(Error{"create_topic", rd_kafka_err2str(error), topic, ""});
}

}  // namespace fencepost::consumer
