// The order chains of all keys (order: key), each for as long as it has a record. Sans-IO; the
// engine thread's.
#pragma once

#include <deque>
#include <string_view>
#include <vector>

#include "consumer/flow/state/name_map.h"
#include "consumer/flow/state/order_chain.h"
#include "consumer/record/record.h"

namespace fencepost::consumer {

class OrderChains {
 public:
  // The chain of this key in this partition, made where there is none; a record joins it next.
  OrderChain& Of(PartitionIndex partition, std::string_view key);
  // It has lost its last record.
  void Remove(OrderChain& chain);

 private:
  std::deque<OrderChain> pool_;  // stable addresses
  std::vector<OrderChain*> unused_;
  NameMap<OrderChain*> by_name_;  // OrderChain::name
  std::uint64_t next_id_ = 1;
};

}  // namespace fencepost::consumer
