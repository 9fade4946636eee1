// Faults of a MockCluster: requests that fail or are late, and brokers that vanish.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <librdkafka/rdkafka.h>
// After rdkafka.h, which it needs.
#include <librdkafka/rdkafka_mock.h>

#include "consumer/kafka/client/mock_cluster.h"

namespace fencepost::consumer {

// The next `count` requests of that kind (Kafka protocol ApiKey) are answered with the error code.
inline void FailRequests(const MockCluster& cluster, std::int16_t api_key, int error_code,
                         std::size_t count) {
  const std::vector<rd_kafka_resp_err_t> errors(count,
                                                static_cast<rd_kafka_resp_err_t>(error_code));
  rd_kafka_mock_push_request_errors_array(cluster.cluster(), api_key, errors.size(), errors.data());
}

// The next request of that kind is answered after so long.
inline void DelayRequest(const MockCluster& cluster, std::int16_t api_key,
                         std::chrono::milliseconds by) {
  rd_kafka_mock_broker_push_request_error_rtts(
      cluster.cluster(), 1, api_key, 1, RD_KAFKA_RESP_ERR_NO_ERROR, static_cast<int>(by.count()));
}

// The next request of that kind is answered with the error code, and so late.
inline void FailRequestLate(const MockCluster& cluster, std::int16_t api_key, int error_code,
                            std::chrono::milliseconds by) {
  rd_kafka_mock_broker_push_request_error_rtts(cluster.cluster(), 1, api_key, 1,
                                               static_cast<rd_kafka_resp_err_t>(error_code),
                                               static_cast<int>(by.count()));
}

// The broker vanishes, or comes back at the same address.
inline void SetBrokerUp(const MockCluster& cluster, bool up) {
  up ? rd_kafka_mock_broker_set_up(cluster.cluster(), 1)
     : rd_kafka_mock_broker_set_down(cluster.cluster(), 1);
}

}  // namespace fencepost::consumer
