// The invariants of locking/PROTOCOL.md, by their numbers, looked at whenever something happens.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/flow/flow.h"
#include "consumer/record/record.h"
#include "locking/core/lock/lock_core.h"
#include "tests/model/simulator/effects.h"
#include "tests/model/simulator/history_checker.h"
#include "tests/support/node_model.h"

namespace fencepost::simulator {

class Process;
class SimWorker;
class World;
struct Log;
struct LogRecord;
struct Produced;
struct SimNode;

class Checks {
 public:
  Checks(World& world, Promise promise, std::optional<Nanos> told_within)
      : world_(world),
        history_(promise, told_within ? std::optional(told_within->count()) : std::nullopt) {}

  void OnSent(const Process& process, const locking::Op& op);
  void OnOperation(SimNode& node, const Process& process, const locking::Op& op,
                   const locking::NodeModel::Unit& before, const locking::NodeModel::Unit& after,
                   const locking::Reply& reply);
  void OnForgot(const SimNode& node);  // wiped, restarted, or its clock stepped
  void OnEvicted(const SimNode& node, const std::string& name);
  [[nodiscard]] bool AnyEvicted() const { return evicted_; }
  void OnLockEvent(SimWorker& worker, const locking::LockEvent& event, std::string_view name);
  void OnExtended(SimWorker& worker, locking::LockId lock);
  void OnStep(SimWorker& worker);
  // Of which failures the owner of a partition is told.
  void OnTold(const consumer::AssignedPartition& assigned);
  // The flow wants this; called before anybody acts on it.
  void OnCall(SimWorker& worker, const consumer::HandlerCall& call);
  void OnLetter(SimWorker& worker, const consumer::DeadLetter& letter);
  void OnBatch(const consumer::WriteRequest& request);
  // It happened.
  // `log`: the first one of its partition, or which of those that came in its place.
  void OnSentRecord(const LogRecord& record, const std::string& chain, int partition, int log);
  void OnEffect(const std::string& id, const std::string& source, const By& by,
                bool lost_to_newer = false);
  void OnPublished(const std::string& source, const By& by);
  // The output has taken it, and nothing was to be written for it.
  void OnNoOutput(const std::string& id, const std::string& source) {
    no_output_.insert(id);
    See({.kind = Seen::Kind::kNoOutput, .source = source}, {});
  }
  // By position: the ledger has its offset as done.
  void OnLetterDone(const std::string& id) { no_output_.insert(id); }
  void OnTransaction(const By& by, const std::vector<Produced>& items,
                     const std::vector<consumer::PartitionOffset>& offsets);
  void OnCommit(int partition, consumer::Offset next);
  void OnOffsetLost(int partition) {
    See({.kind = Seen::Kind::kOffsetLost, .partition = partition}, {});
  }
  void OnOffsetSet(int partition, consumer::Offset next) {
    See({.kind = Seen::Kind::kOffsetSet, .partition = partition, .next = next}, {});
  }
  void OnGone(int partition, const std::string& source) {
    See({.kind = Seen::Kind::kGone, .source = source, .partition = partition}, {});
  }
  // It is not in the log that comes next.
  void OnReplaced(const std::string& source) {
    See({.kind = Seen::Kind::kReplaced, .source = source}, {});
  }
  // Up to `next` nobody needs to notice.
  void OnAnotherLog(int partition, consumer::Offset next) {
    See({.kind = Seen::Kind::kAnotherLog, .partition = partition, .next = next}, {});
  }
  void OnForgotten(int partition) {
    See({.kind = Seen::Kind::kForgotten, .partition = partition}, {});
  }
  void OnBegins(int partition, consumer::Offset next) {
    See({.kind = Seen::Kind::kBegins, .partition = partition, .next = next}, {});
  }
  // The output has answered a worker, on a connection to what it is now.
  void OnUsed(const By& by) { See({.kind = Seen::Kind::kUsed}, by); }
  void OnAcknowledged(const std::string& id, const By& by) {
    See({.kind = Seen::Kind::kAcknowledged, .id = id}, by);
  }
  void OnEffectLost(const std::string& id, const std::string& source, const By& by) {
    See({.kind = Seen::Kind::kEffectLost, .source = source, .id = id}, by);
  }
  // Of a record for which nothing was written.
  void OnRowLost(const std::string& id) { See({.kind = Seen::Kind::kRowLost, .id = id}, {}); }
  void OnPruned(const std::string& id, const std::string& source) {
    See({.kind = Seen::Kind::kPruned, .source = source, .id = id}, {});
  }
  void OnStopped(const By& by) { See({.kind = Seen::Kind::kStopped}, by); }
  void OnToldOfLog(int partition, const By& by) {
    See({.kind = Seen::Kind::kToldOfLog, .partition = partition}, by);
  }
  void AtTheEnd();

 private:
  struct Lease {
    int worker;
    int life;
    locking::LockId lock;
    locking::Token token;
  };

  std::map<std::string, locking::Token, std::less<>>& Tokens(const SimNode& node);
  void CheckPromise(SimWorker& worker, const Lease& lease, const std::string& name);
  void CheckAlone(SimWorker& worker, const Lease& lease, const std::string& name);
  [[nodiscard]] bool Promised(const std::string& name) const;
  void CheckNothingLeft();
  void CheckRepeats(const std::string& id, const std::vector<By>& effects);
  void NoteLateEffect(const std::string& id, const By& by);
  void See(Seen seen, const By& by);
  void Complain(const std::optional<Complaint>& complaint);
  [[nodiscard]] bool LeaseIsValid(SimWorker& worker, const consumer::InFlight& in) const;
  [[nodiscard]] bool MayBeLeft(std::string_view name) const;
  [[nodiscard]] std::string KnownId(const std::string& id, const std::string& source) const;
  void CheckCovered(const consumer::InFlight& in);
  [[nodiscard]] bool Completed(std::string_view name, locking::Token token) const;
  [[nodiscard]] bool Held(const Lease& lease) const;

  World& world_;
  HistoryChecker history_;  // what the outside sees
  std::map<std::string, std::vector<Lease>, std::less<>> leases_;
  std::vector<std::map<std::string, locking::Token, std::less<>>> granted_;  // by node
  std::map<locking::Nonce, std::pair<int, int>> drawn_;                      // worker, life
  std::map<std::pair<int, locking::Token>, bool> lost_;                      // worker, token
  // By some node: until somebody sees that it evicts, another may count it.
  std::set<std::string, std::less<>> evicted_names_;
  std::set<std::pair<int, locking::Token>> unmarked_;  // worker, token
  std::set<std::string, std::less<>> lost_names_;
  // By assignment and offset: attempts by earlier owners.
  std::map<std::pair<consumer::AssignmentEpoch, consumer::PartitionIndex>,
           std::map<consumer::Offset, int>>
      told_;
  std::set<std::string, std::less<>> no_output_;              // ids
  std::map<std::string, std::set<int>, std::less<>> marked_;  // by id: nodes that had DONE
  std::map<std::string, Nanos, std::less<>> marked_at_;       // first, anywhere
  std::map<std::string, Nanos, std::less<>> majority_at_;     // by id: a quorum of them had
  bool evicted_ = false;                                      // something
  bool forgot_ = false;                                       // some node did
};

}  // namespace fencepost::simulator
