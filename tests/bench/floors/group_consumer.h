// The consumer of both floors: a member of a group, alone in it, that commits nothing by itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "consumer/kafka/client/rdkafka_holders.h"

namespace fencepost::bench {

class GroupConsumer {
 public:
  GroupConsumer(const std::string& bootstrap, std::string topic, const std::string& group);
  ~GroupConsumer();
  GroupConsumer(const GroupConsumer&) = delete;
  GroupConsumer& operator=(const GroupConsumer&) = delete;

  void WaitForPartitions(int count);  // throws when there is a record before it owns them
  // A record, or nothing when none came in time. Throws on any error.
  consumer::rdkafka::Message Poll(int timeout_ms);
  // Of these partitions: the offset after the last record.
  [[nodiscard]] consumer::rdkafka::PartitionList Offsets(
      const std::map<std::int32_t, std::int64_t>& offsets) const;
  [[nodiscard]] rd_kafka_t* handle() const { return handle_.get(); }

 private:
  const std::string topic_;
  consumer::rdkafka::Handle handle_;
};

// A client with these settings, or throws.
consumer::rdkafka::Handle MakeClient(rd_kafka_type_t type,
                                     const std::map<std::string, std::string>& settings);

}  // namespace fencepost::bench
