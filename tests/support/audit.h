// What was sent, what took effect, what handlers were asked and what became a dead letter,
// compared. It knows nothing of servers, nor of what the program has in memory.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace fencepost::testing {

struct Place {
  int partition = 0;
  std::int64_t offset = 0;
  auto operator<=>(const Place&) const = default;
};

struct Record {
  int order = -1;
  Place place;
  auto operator<=>(const Record&) const = default;
};

// A record of the topic. The same order may be there more than once.
struct Sent {
  Record record{};
  std::string key;
  int log = 0;  // a topic that is made again is another log
};

// A row of a table without a unique key, a line, or a record of an output topic.
struct Effect {
  Record record{};  // that it says it came from
  std::int64_t amount = 0;
  std::int64_t token = 0;
  int life = -1;  // the process that wrote it, by its number in the team
};

// A call as its receiver logged it, also one that it refused.
struct Call {
  Record record{};
  std::int64_t token = 0;
  bool accepted = false;
  int life = -1;
  bool unusable = false;  // it was accepted, and answered with what no worker can take
  std::string record_id{};
  std::string pipeline{};
  std::int64_t begin_ns = 0;  // on one clock for all calls of a pipeline
  std::int64_t end_ns = 0;
};

struct History {
  bool by_position = false;   // each record counts, else each order
  std::string order = "key";  // effects keep the order of their key within its partition, or of
                              // their partition, or none
  std::vector<Sent> sent;
  std::vector<Effect> effects;  // in the order in which they happened
  std::vector<Call> calls;      // likewise
  std::set<Record> dead;        // dead letters
  std::set<Record> maybe_twice;
  std::set<Record> maybe_never;    // their log was deleted before the group's offsets passed them
  std::vector<std::int64_t> ends;  // by partition
  std::vector<std::int64_t> committed;
  std::map<int, std::string> ranges;  // by position: the ledger's row of each partition
  // Partitions were given to others meanwhile. Of each, what was committed just before the handler
  // gave good answers again: from there on, who has it now may find a record again whose dead
  // letter was published, and the handler well. A record before that is found by nobody any more.
  // Empty: no partition was given away, or no answer was unusable.
  std::vector<std::int64_t> moved_from;
};

// What the handler makes of an order.
std::int64_t AmountOf(int order, int factor = 2);

// Each check adds a line with the number of what it found wrong and the first example.
class Audit {
 public:
  // The history outlives it.
  explicit Audit(const History& history);

  // Of every effect: a record of that order is at its place, and the amount is the handler's.
  Audit& Genuine(int factor = 2);
  // Each has an effect or a dead letter, and none has a second effect.
  Audit& Once();
  Audit& NoneLost();
  // All but one effect of each are of lives in that set.
  Audit& RepeatedOnlyBy(const std::set<int>& lives);
  // What may have one effect appears for the first time in the order in which its chain was sent.
  Audit& InOrder();
  // Each dead letter has an answer that no worker can take, and its record no effect as well,
  // unless its partition moved.
  Audit& DeadLetters();
  // An effect has the token of a call that was accepted, or a later one, and none with which all
  // calls were refused.
  Audit& EffectsHaveCalls();
  // No call was accepted after one with a higher token.
  Audit& TokensGoUp();

  // A call names a record and its id, and has a token.
  Audit& CallsAreGenuine();
  Audit& EachCalled();
  // Each call after the first follows one that was refused, or one of a life in `lost` (it died, or
  // was stalled past its leases), or is such a life's late one. A life in `stale` was not told yet
  // that its partitions were given away: it may call with a new token, too.
  Audit& CallsExplained(const std::set<int>& lost, const std::set<int>& stale = {});
  // No two calls of one chain at a time. A life in `lost` may have sent a call that is carried out
  // after it lost the lease: that one does not count.
  Audit& CallsApart(const std::set<int>& lost);

  Audit& CommittedToTheEnd();
  // The ledger has each partition as done from its beginning to its end, but for dead letters.
  Audit& Ledger();

  // "": all is well.
  [[nodiscard]] const std::string& text() const { return text_; }
  // How many of each kind were found, 0 where it was looked for.
  [[nodiscard]] const std::map<std::string, int>& counts() const { return counts_; }
  // How often an effect came after one of a later record of its partition.
  [[nodiscard]] int Overtaken() const;

 private:
  class Trouble;

  [[nodiscard]] Record Subject(const Record& record) const;
  [[nodiscard]] std::string ChainOf(const Record& record) const;
  [[nodiscard]] bool MayBeFoundAgain(const Place& place) const;

  const History& history_;
  std::map<Record, const Sent*> sent_;
  std::set<Record> dead_;  // subjects
  std::map<std::string, int> counts_;
  std::string text_;
};

}  // namespace fencepost::testing
