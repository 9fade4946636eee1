// The orders that the demo sends: about 5% of the records repeat one of those before, and half of
// these come by another partition, as from a second producer. Deterministic by seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

namespace fencepost::cli {

class Orders {
 public:
  static constexpr int kPartitions = 12;

  explicit Orders(std::uint64_t seed) : random_(seed) {}
  struct Next {
    std::size_t number;
    std::int32_t partition;
  };
  Next Take() {
    const bool repeated = distinct_ > 100 && random_() % 100 < kRepeatedPercent;
    const std::size_t number =
        repeated ? distinct_ - 1 - random_() % std::min(distinct_, kReach) : distinct_++;
    const bool astray = repeated && random_() % 2 == 0;
    return {number, static_cast<std::int32_t>((number + (astray ? 1 : 0)) % kPartitions)};
  }
  [[nodiscard]] std::size_t distinct() const { return distinct_; }
  // How many different orders the first records are.
  static std::size_t DistinctOf(std::size_t records, std::uint64_t seed) {
    Orders orders(seed);
    for (std::size_t i = 0; i < records; ++i) orders.Take();
    return orders.distinct();
  }

 private:
  static constexpr std::uint64_t kRepeatedPercent = 5;
  static constexpr std::size_t kReach = 3000;  // how far back the repeated one lies at most

  std::mt19937_64 random_;
  std::size_t distinct_ = 0;
};

}  // namespace fencepost::cli
