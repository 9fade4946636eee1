// The records that the demo produces: orders, about 5% of them a second time, some of those on
// another partition. Deterministic by seed.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/producer.h"
#include "locking/base/error.h"

namespace fencepost::cli {

class Stream {
 public:
  Stream(std::string topic, int partitions, std::uint64_t seed,
         std::unique_ptr<consumer::Producer> producer);

  // Produces until `total` records are in the topic, and waits until they do.
  tl::expected<void, Error> ProduceUpTo(std::size_t total);
  [[nodiscard]] std::size_t produced() const { return produced_; }
  [[nodiscard]] const std::set<std::string>& unique() const { return unique_; }

 private:
  tl::expected<void, Error> SendOne();

  const std::string topic_;
  const int partitions_;
  std::mt19937_64 random_;
  std::unique_ptr<consumer::Producer> producer_;
  std::size_t produced_ = 0;
  std::size_t next_ = 0;
  std::set<std::string> unique_;
};

}  // namespace fencepost::cli
