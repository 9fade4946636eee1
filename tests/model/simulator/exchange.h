// What is on its way between one worker and one node: a request, its execution there, its replies.
// It outlives its worker: what was sent arrives. A reply travels as bytes that only name it, for
// the worker's NodeSession to deliver or not; what it says is looked up here.
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
  enum class Kind : std::uint8_t { kConnect, kPrepare, kProbe, kWrite, kBatch };
  enum class Fate : std::uint8_t { kArrives, kRequestVanishes, kAnswerVanishes };
  struct Call {                    // one script call
    std::vector<locking::Op> ops;  // of one kind; their names view into `names`
    std::vector<locking::Reply> replies;
    locking::CallHeader header;
    bool suits_plain = false;         // acquires that may go by plain commands
    bool answered_by_script = false;  // else the sentinel is missing
  };

  explicit Exchange(Kind what) : kind(what) {}
  [[nodiscard]] std::size_t Replies() const { return kind == Kind::kBatch ? calls.size() : 1; }
  [[nodiscard]] long long Name(std::size_t reply) const {
    return static_cast<long long>(number * 1000 + reply);
  }

  const Kind kind;
  std::size_t number = 0;  // of the link's
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

// Sends it over the network to its node, after `wait`; the link receives the replies, if there are
// any.
void Transmit(World& world, const std::shared_ptr<Exchange>& exchange, Nanos wait = Nanos(0));

}  // namespace fencepost::simulator
