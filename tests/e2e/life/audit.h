// What went in and what came out of a pipeline, compared. The checks know nothing of servers. Each
// returns "" when all is well, else what is wrong and the first example of it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/life/calls.h"
#include "tests/support/kafka_client.h"

namespace fencepost::testing {

struct Position {
  int partition = 0;
  std::int64_t offset = 0;
  auto operator<=>(const Position&) const = default;
};

struct Effect {
  int order = -1;
  std::int64_t amount = 0;
  Position position;  // of the record that it came from
  int life = -1;      // who wrote it
};

// The records of a topic of orders.
class Stream {
 public:
  explicit Stream(const std::vector<TestRecord>& records);

  [[nodiscard]] std::size_t records() const { return records_.size(); }
  [[nodiscard]] const std::set<int>& orders() const { return orders_; }
  [[nodiscard]] const std::map<Position, int>& positions() const { return records_; }
  // -1: there is no such record.
  [[nodiscard]] int OrderAt(Position position) const;
  // The name of the chain that a record is in: all of it counts in order.
  [[nodiscard]] std::string ChainOf(Position position, const std::string& order) const;

 private:
  std::map<Position, int> records_;
  std::map<Position, std::string> keys_;
  std::set<int> orders_;
};

// Of every effect: a record of that order stands at its position, and the amount is right.
std::string Genuine(const std::vector<Effect>& effects, const Stream& stream, int factor);
std::string NoneLost(const std::vector<Effect>& effects, const Stream& stream);
std::string OnceForEachOrder(const std::vector<Effect>& effects, const Stream& stream);
std::string OnceForEachPosition(const std::vector<Effect>& effects, const Stream& stream);
// Of an order with several effects all but one are blamed on lives of that set.
std::string RepeatedOnlyBy(const std::vector<Effect>& effects, const std::set<int>& lives);

// Effects in the order in which they happened. Each chain's positions appear for the first time in
// ascending order.
std::string InOrder(const std::vector<Effect>& effects, const Stream& stream,
                    const std::string& order);
// How often an effect came after one of a later record of its partition.
int Overtaken(const std::vector<Effect>& effects);

// A call says where its record is; that record is there, and has that id.
std::string Genuine(const std::vector<Call>& calls, const Stream& stream, bool by_position);
std::string EachCalled(const std::vector<Call>& calls, const Stream& stream, bool by_position);
// Each call of an id after its first follows one that was refused, or one of a life in `lost`
// (it died, or was stalled past its leases), or is such a life's late one. A life in `stale` was
// not told yet that its partitions were given away: it may call with a new token, too.
std::string Explained(const std::vector<Call>& calls, const std::set<int>& lost,
                      const std::set<int>& stale = {});
// No two calls of one chain at a time. A life in `lost` may have sent a call that is carried out
// after it lost the lease: that one does not count.
std::string Apart(const std::vector<Call>& calls, const Stream& stream, const std::string& order,
                  const std::set<int>& lost);

}  // namespace fencepost::testing
