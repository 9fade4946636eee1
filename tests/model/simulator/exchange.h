// What is on its way between one worker and one node: a call, its execution there, its answer. It
// lives on when the worker dies: what was sent arrives.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "locking/core/ops.h"
#include "locking/core/store/store.h"
#include "locking/redis/wire.h"
#include "tests/model/simulator/process.h"
#include "tests/model/simulator/sim_node.h"

namespace fencepost::simulator {

class Link;
class World;

struct Exchange {
  enum class Kind : std::uint8_t { kHello, kProbe, kWrite, kBatch };
  enum class Fate : std::uint8_t { kArrives, kRequestVanishes, kAnswerVanishes };
  struct Call {                    // one script call
    std::vector<locking::Op> ops;  // of one kind; their names view into `names`
    std::vector<locking::Reply> replies;
    locking::CallHeader header;
    bool answered_by_script = false;  // else the sentinel is missing
  };

  Kind kind = Kind::kHello;
  Fate fate = Fate::kArrives;
  bool breaks = false;  // what vanishes takes the connection with it
  Process* process = nullptr;
  int incarnation = 0;   // of the process
  Link* link = nullptr;  // good only while the process lives
  int connection = 0;    // of the link
  SimNode* node = nullptr;
  int node_incarnation = 0;
  locking::Instant sent_at;
  std::vector<Call> calls;
  std::deque<std::string> names;
  Nanos answered_at{0};
  locking::SentinelWrite write;
  locking::NodeInfo info;
};

// Sends it over the network to its node; the link hears of the answers, if there are any.
void Transmit(World& world, const std::shared_ptr<Exchange>& exchange);
// The worker learns that the connection is no more, a little later.
void BreakConnection(World& world, const Exchange& exchange);

}  // namespace fencepost::simulator
