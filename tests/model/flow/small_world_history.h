// One history of a small world: what has happened in it, what can happen next, and what must hold.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/flow/flow_bench.h"
#include "tests/model/flow/small_world.h"

namespace fencepost::consumer::small_world {

constexpr int kWorkers = 2;

enum class Kind : std::uint8_t {
  kDeliver,
  kReplay,
  kRound,
  kHappen,
  kAnswer,
  kLookUp,
  kHandle,
  kAcknowledge,
  kCommit,
  kTick,
  kTell,  // that its partition is lost
  kOrphan,
  // Time and faults.
  kHalfTtl,
  kTtl,
  kRevoke,
  kLose,
  kCrash,
  kUnanswered,
  kAborted,
};

struct Step {
  Kind kind;
  std::uint8_t worker = 0;
};
using History = std::vector<Step>;

// One row of the table and of its ledger.
struct Row {
  int effects = 0;
  std::string source;
  locking::Token token;
};
struct Item {
  std::string id;
  std::string source;
  Offset offset = 0;
  locking::Token token;
  std::uint64_t chain = 0;
};
// A record in the hands of the output or of the handler, and the lease it went out under.
struct Use {
  std::string name;
  locking::Token token;
  Instant until;
};

class World {
 public:
  World(const Rules& rules, Found& found) : rules_(rules), found_(found), left_(rules) {
    shared_.lock.contact = locking::Contact::kQuorum;
    for (int worker = 0; worker < kWorkers; ++worker) {
      at(worker).bench = std::make_unique<FlowBench>(shared_, Options(), 1U + worker);
      at(worker).bench->settles = false;
    }
    Own(0);
    if (rules_.replay) at(0).bench->Assign(1);
  }

  void Do(const Step& step);
  [[nodiscard]] std::vector<Step> Enabled() const;
  [[nodiscard]] static bool IsTrouble(Kind kind) { return kind >= Kind::kHalfTtl; }
  // Nothing goes wrong from now on: all must come to its end.
  void EndInCalm();
  [[nodiscard]] std::string Print() const;
  [[nodiscard]] const std::string& broken() const { return broken_; }

 private:
  enum class Part : std::uint8_t { kNone, kOwner, kRevoking, kLost };  // in the partition
  struct Worker {
    std::unique_ptr<FlowBench> bench;  // null: dead
    Part part = Part::kNone;
    AssignmentEpoch epoch = 0;
    Offset next = 0;  // to be delivered
    bool replayed = false;
    bool ticked = true;                              // since time has passed
    std::deque<std::vector<WriteOutcome>> happened;  // of the oldest writes, not yet answered
    std::map<std::pair<std::uint64_t, std::string>, Use> uses;  // by write or call, and record
    std::set<locking::Nonce> nonces;
    std::set<locking::Token> ended;  // leases whose time was over while it had them
  };

  [[nodiscard]] FlowOptions Options() const;
  Worker& at(int worker) { return workers_.at(static_cast<std::size_t>(worker)); }
  [[nodiscard]] const Worker& at(int worker) const {
    return workers_.at(static_cast<std::size_t>(worker));
  }
  [[nodiscard]] Offset End() const { return static_cast<Offset>(rules_.ids.size()); }
  void Own(int worker);
  void HandOver(int from);
  void Break(std::string what) {
    if (broken_.empty()) broken_ = std::move(what);
  }

  // --- the output ------------------------------------------------------------------------------
  [[nodiscard]] static std::vector<Item> ItemsOf(const WriteBatch& batch);
  std::vector<WriteOutcome> Happen(const std::vector<Item>& items);
  void Commit(int worker, const std::vector<PartitionOffset>& offsets);
  [[nodiscard]] bool Final(Offset offset) const;
  [[nodiscard]] std::string IdOf(Offset offset) const;

  // --- what must hold --------------------------------------------------------------------------
  void Age(Worker& worker);
  void AfterStep(int worker);
  void Check();
  void NoteUse(Worker& worker, std::uint64_t what, const std::string& id);
  [[nodiscard]] std::string NameOf(const std::string& id) const;
  [[nodiscard]] bool Held(const std::string& name, locking::Token token) const;
  void CheckLeft();
  void CheckEnd();
  [[nodiscard]] bool Finished() const;

  [[nodiscard]] int Bucket(Instant at) const;
  void Print(const Worker& worker, std::string& text) const;

  const Rules& rules_;
  Found& found_;
  Rules left_;  // how often each fault may still happen
  SharedWorld shared_;
  std::array<Worker, kWorkers> workers_;
  AssignmentEpoch epoch_ = 0;  // of the owner; commits of others are refused
  Offset committed_ = 0;
  std::map<std::string, Row> rows_;
  std::map<std::string, int> letters_;
  std::deque<std::vector<Item>> orphans_;  // sent by a worker that is dead
  std::string broken_;
};

}  // namespace fencepost::consumer::small_world
