// The lag of a whole group, as the brokers know it: also of partitions that no worker holds, which
// none of them counts. A thread of its own asks for the ends and the committed offsets of all
// topics, each `interval`, by a client of its own that joins no group. While the brokers do not
// answer, the last value stays.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <thread>

#include "consumer/pipeline/options.h"
#include "consumer/record/record.h"

namespace fencepost::consumer {

class GroupLag {
 public:
  // Told on its thread, in records.
  using Told = std::function<void(std::int64_t)>;

  GroupLag(KafkaOptions options, std::chrono::milliseconds interval, Told told);
  ~GroupLag() = default;  // waits for a question that is out: two seconds where no broker answers
  GroupLag(const GroupLag&) = delete;
  GroupLag& operator=(const GroupLag&) = delete;

 private:
  void Run(const std::stop_token& stop);

  const KafkaOptions options_;
  const std::chrono::milliseconds interval_;
  const Told told_;
  std::jthread thread_;  // last: its end is waited for
};

// Sum of what lies between them, by partition. A partition of which nothing is committed (-1) has
// not been begun, and its end says nothing: it counts 0.
std::int64_t LagOf(std::span<const Offset> ends, std::span<const Offset> committed);

}  // namespace fencepost::consumer
