// The order chains of all keys: one a key and partition, for as long as it has a record.
#include "consumer/flow/state/order_chains.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

TEST(OrderChains, AreOneAPartitionAndKeyAndAnEmptyKeyIsOne) {
  OrderChains chains;
  OrderChain& a = chains.Of(0, "a");
  EXPECT_EQ(&chains.Of(0, "a"), &a);
  EXPECT_NE(&chains.Of(1, "a"), &a);
  EXPECT_EQ(&chains.Of(0, ""), &chains.Of(0, ""));
  EXPECT_NE(&chains.Of(0, std::string_view("\0", 1)), &chains.Of(0, ""));
  EXPECT_NE(a.id, 0U);
}

TEST(OrderChains, AreAnotherOneOnceTheirLastRecordHasLeft) {
  OrderChains chains;
  InFlight in;
  OrderChain& first = chains.Of(0, "a");
  const auto id = first.id;
  first.Join(in);
  first.Leave(in);
  chains.Remove(first);
  OrderChain& second = chains.Of(0, "a");
  EXPECT_NE(second.id, id) << "nothing of the first one holds it back";
  EXPECT_EQ(second.tail, nullptr);
}

TEST(OrderChains, KeepTheirPlacesWhileOthersComeAndGo) {
  OrderChains chains;
  std::array<InFlight, 1000> records;
  std::array<OrderChain*, 1000> places{};
  for (std::size_t i = 0; i < records.size(); ++i) {
    places[i] = &chains.Of(0, std::to_string(i));
    places[i]->Join(records[i]);
  }
  for (std::size_t i = 0; i < records.size(); i += 2) {
    places[i]->Leave(records[i]);
    chains.Remove(*places[i]);
  }
  for (std::size_t i = 1; i < records.size(); i += 2) {
    EXPECT_EQ(&chains.Of(0, std::to_string(i)), places[i]) << i;
  }
}

}  // namespace
}  // namespace fencepost::consumer
