// How many more records may be handed from the Kafka thread to the engine thread, counting those
// that are on their way. The engine thread offers what the flow has room for; the Kafka thread
// takes off what it has sent and the engine has not taken in yet. Where that leaves nothing, the
// Kafka thread waits, and is woken once there is room. Two threads, no lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "consumer/record/record.h"

namespace fencepost::consumer {

class DeliveryCredit {
 public:
  // What is on its way at a time: records and their bytes (Record::Bytes).
  struct Load {
    std::int64_t records = 0;
    std::int64_t bytes = 0;
  };

  // --- Kafka thread ----------------------------------------------------------------------------
  // First what is on its way is read: what has arrived since is taken off the offer that is read
  // then.
  [[nodiscard]] std::size_t Records() const {
    return Bytes() == 0 ? 0 : static_cast<std::size_t>(Left(records_));
  }
  [[nodiscard]] std::uint64_t Bytes() const { return static_cast<std::uint64_t>(Left(bytes_)); }
  // As Records, and where that is 0 the engine is asked for a TakeAwaited.
  [[nodiscard]] std::size_t RecordsOrAwait() {
    if (const std::size_t records = Records(); records > 0) return records;
    awaited_.store(true, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Records();
  }
  // Before these are handed over.
  Load Send(const std::vector<Record>& records) {
    Load load{.records = static_cast<std::int64_t>(records.size())};
    for (const Record& record : records) load.bytes += static_cast<std::int64_t>(record.Bytes());
    Add(load);
    return load;
  }
  // Before an assignment is handed over: there is no room until the flow has taken it in, since
  // what is on offer was meant for the partitions before.
  Load SendAssignment() {
    const Load load{.records = kAllRoom};
    Add(load);
    return load;
  }

  // --- engine thread ---------------------------------------------------------------------------
  void Offer(std::size_t records, std::uint64_t bytes) {
    records_.offered.store(static_cast<std::int64_t>(records), std::memory_order_relaxed);
    bytes_.offered.store(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  }
  // The flow has taken this in, and the offer counts it.
  void Arrived(Load load) {
    records_.on_its_way.fetch_sub(load.records, std::memory_order_release);
    bytes_.on_its_way.fetch_sub(load.bytes, std::memory_order_release);
  }
  // After an offer: there is room, and the Kafka thread waits for it. True once.
  [[nodiscard]] bool TakeAwaited() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return awaited_.load(std::memory_order_relaxed) && Records() > 0 &&
           awaited_.exchange(false, std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t kAllRoom = std::int64_t{1} << 40;
  struct Count {
    std::atomic<std::int64_t> offered{0};
    std::atomic<std::int64_t> on_its_way{0};
  };

  static std::int64_t Left(const Count& count) {
    const std::int64_t out = count.on_its_way.load(std::memory_order_acquire);
    return std::max<std::int64_t>(0, count.offered.load(std::memory_order_relaxed) - out);
  }
  void Add(Load load) {
    records_.on_its_way.fetch_add(load.records, std::memory_order_relaxed);
    bytes_.on_its_way.fetch_add(load.bytes, std::memory_order_relaxed);
  }

  Count records_;
  Count bytes_;
  std::atomic<bool> awaited_{false};
};

}  // namespace fencepost::consumer
