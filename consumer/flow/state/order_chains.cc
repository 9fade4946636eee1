#include "consumer/flow/state/order_chains.h"

#include "locking/base/check.h"

namespace fencepost::consumer {

OrderChain& OrderChains::Of(PartitionIndex partition, std::string_view key) {
  if (unused_.empty()) unused_.push_back(&pool_.emplace_back());
  OrderChain* const spare = unused_.back();  // its name is looked up, and, if it is new, kept
  spare->name.assign(reinterpret_cast<const char*>(&partition), sizeof partition);
  spare->name.append(key);
  const auto [found, made] = by_name_.try_emplace(spare->name, spare);
  if (!made) return *found.value();
  unused_.pop_back();
  spare->id = next_id_++;
  return *spare;
}

void OrderChains::Remove(OrderChain& chain) {
  FENCEPOST_CHECK(chain.tail == nullptr, "a chain goes with its last record");
  by_name_.erase(std::string_view(chain.name));
  unused_.push_back(&chain);
}

}  // namespace fencepost::consumer
