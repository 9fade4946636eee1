// What the outside world has seen of a run, in the order in which it happened: handler calls,
// effects, dead letters, offsets. A table that only grows, without any key: what was seen twice
// stands there twice. Plain types; nothing of the product.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fencepost::simulator {

// A record of the log, as its producer knows it.
struct Sent {
  std::string source;  // topic/partition/offset, and what tells its log
  std::string id;      // empty: it has none
  std::string chain;   // records of one have an order; empty: none
  int partition = 0;
  std::int64_t offset = 0;
  bool makes_no_row = false;  // the handler has none for it
  int log = 0;            // of its partition: the first, or which of those that came in its place
  std::string row;        // of the table, which the newest change has; empty: a row of its own
  std::int64_t made = 0;  // when: it, or the record that it is the replay of
};

struct Seen {
  enum class Kind : std::uint8_t {
    kCall,
    kEffect,
    kLetter,
    kNoOutput,  // the record is done, and nothing was written for it
    kOffset,
    kOffsetLost,
    kOffsetSet,     // by a person
    kBegins,        // the group had none, and begins here
    kGone,          // the record was deleted from its log
    kReplaced,      // the record is not in the log that comes next
    kAnotherLog,    // the partition's log is the next one
    kForgotten,     // a person has taken back all that the output knows as done of a partition
    kToldOfLog,     // a worker ended, and said that this partition's log is not what it was
    kAcknowledged,  // this worker was told that the effect is there: its own, or found
    kEffectLost,    // the output has gone back behind it
    kRowLost,       // likewise, of a record for which nothing was written
    kPruned,        // the output has forgotten that this effect is there
    kUsed,          // the output, as it is now, has answered this worker
    kStopped,       // it ended, and said that commits are lost
  };
  Kind kind = Kind::kEffect;
  std::string source;  // but for offsets
  std::string id;      // kCall, kEffect: under which it came
  std::uint64_t token = 0;
  bool lost_to_newer = false;  // kEffect: the table has a newer change of the row
  int partition = 0;           // of offsets
  std::int64_t next = 0;       // kOffset, kOffsetSet, kBegins: the group goes on from there;
                               // kAnotherLog: up to there nobody needs to notice
  int worker = 0;              // whoever did it (kEffectLost: had), in which of its lives,
  int life = 0;
  std::uint64_t assignment = 0;  // and by which assignment
  std::int64_t at = 0;           // ns; of what a worker was told, and of its end
};

struct History {
  std::vector<Sent> sent;
  std::vector<Seen> seen;
};

}  // namespace fencepost::simulator
