#include "tests/model/replacement/small_world.h"

namespace fencepost::replacement_model {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::vector<Scenario>& Scenarios() {
  const std::vector<int> old{0, 1, 2};
  const std::vector<int> other{0, 1, 3};
  const std::vector<int> another{4, 1, 0};
  static const std::vector<Scenario> all{
      {"a client with the old list, and one with the new", {{old}, {other, seconds(2)}}},
      {"the old node comes back with what it had",
       {{old}, {other, seconds(2)}},
       seconds(1),
       seconds(9),
       Fate::kComesBack},
      {"the old node comes back empty, to clients without memory of it",
       {{old, seconds(2)}, {other, milliseconds(2300)}},
       seconds(1),
       seconds(3),
       Fate::kComesBackEmpty},
      {"the old node comes back empty, to a client that remembers it",
       {{old}, {old, seconds(2)}},
       seconds(1),
       seconds(3),
       Fate::kComesBackEmpty},
      {"two that replace it by different nodes", {{other, seconds(2)}, {another, seconds(2)}}},
      {"two of one list, and the node is empty",
       {{old, seconds(2)}, {old, milliseconds(2100)}},
       seconds(1),
       milliseconds(1500),
       Fate::kComesBackEmpty},
  };
  return all;
}

}  // namespace fencepost::replacement_model
