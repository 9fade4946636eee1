// The lock store as one client sees it: which nodes belong, which are fresh from a wipe or a
// restart (quarantined), which must not be counted and why. Sans-IO: the driver reports
// connections, answers and times; the store says which node to probe and which sentinel to write.
// One thread (the driver's).
//
// A host does this: hand in what happened; after it take commands, of every node, until there are
// none (what one node said may call for a write to another); wake the store by OnTime at
// NextTime(), and after a pause of its own before anything is sent. Nothing is asked twice in a row
// without a pause: what a person must fix is looked at again every second.
//
// Generations: sentinels of one store agree on store id, N and epoch. Epochs are odd, 1 at
// creation. A client that cannot know whether an empty node is the one that was lost (it has not
// seen it in the store itself) first raises all other nodes to the next even epoch, then admits the
// empty one with the odd epoch above, then raises the others to it. Only nodes of one generation
// (epoch | 1) make a quorum, so that clients whose list still has the node that was replaced stop,
// and say why.
//
// Invariants (PROTOCOL.md): a wiped or restarted node never counts before every lease that it may
// have forgotten has ended; every write to a sentinel is a compare-and-set against what was read;
// two clients with different node lists never both count a quorum without a node in common.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "locking/base/error.h"
#include "locking/core/observer.h"
#include "locking/core/ops.h"
#include "locking/core/options.h"
#include "locking/core/store/node_clock.h"
#include "locking/core/store/sentinel.h"

namespace fencepost::locking {

// What the driver read on one connection, right after it was made or when asked to probe.
struct NodeInfo {
  std::string run_id;                   // INFO server
  std::string maxmemory_policy;         // INFO memory
  std::string role;                     // INFO replication: master | slave
  std::string mode;                     // INFO server: standalone | cluster | sentinel
  std::optional<std::string> sentinel;  // raw value of kSentinelKey, read after TIME or with it
  CallInfo call;                        // when it was asked and answered, and the node's TIME
};

// Compare-and-set of the sentinel. The node writes `replacement` only if its value equals
// `expected` (absent where nullopt); with quarantine_for, it puts TIME + quarantine_for in place of
// the replacement's quarantine_until. Answered by OnSentinel with what is there afterwards.
struct SentinelWrite {
  std::optional<std::string> expected;
  std::string replacement;
  std::optional<Millis> quarantine_for;
};

struct StoreCommand {
  enum class Kind { kProbe, kWrite } kind = Kind::kProbe;  // probe: read INFO, TIME, sentinel again
  SentinelWrite write;
};

// The state of a node, for people (locks status, /status) and metrics.
struct NodeStatus {
  bool connected = false;
  bool open = false;         // takes part: connected, member of the store, no problem
  bool quarantined = false;  // takes part, but its grants do not count yet
  Millis quarantine_left{0};
  std::optional<Nanos> clock_offset;  // node wall - client wall
  std::string run_id;
  std::optional<Sentinel> sentinel;
  std::string problem;  // one line; empty when there is none
};

enum class StoreCreation {
  kQuarantined,  // `run`: uses the store that is there; a new one starts in quarantine
  kImmediate,    // `locks init`: counts at once; only where none of the N nodes has a sentinel, the
                 // problem store_exists otherwise
  kForced,       // `locks init --force`: writes a new store over whatever is there: every lock and
                 // DONE mark is forgotten
  kNever,        // `locks status`: looks, changes nothing (no_store where there is none)
};

class Store {
 public:
  // `own_id`: 128 random bits for a store that this client may have to create.
  Store(int nodes, const LockOptions& options, StoreCreation creation, Nonce own_id,
        LockObserver* observer);

  void OnConnected(NodeIndex node, const NodeInfo& info, Now now);  // also the answer to a probe
  void OnDisconnected(NodeIndex node, Now now);
  void OnSentinel(NodeIndex node, std::optional<std::string> current, const CallInfo& call,
                  Now now);
  void OnNoSentinel(NodeIndex node, Now now);  // a script found none: wiped while connected
  // Every answered script call: tracks the node's clock against BOOTTIME. A step of more than the
  // drift (beyond what the round trip leaves open) quarantines the node.
  void OnCall(NodeIndex node, const CallInfo& call, Now now);
  void OnTime(Now now);

  // The next thing the driver must do at this node, if any. At most one is out at a time; its
  // answer is OnConnected (probe) or OnSentinel (write), or OnDisconnected.
  std::optional<StoreCommand> TakeCommand(NodeIndex node);

  [[nodiscard]] int size() const { return static_cast<int>(nodes_.size()); }
  // May be sent lock operations.
  [[nodiscard]] bool Open(NodeIndex node) const { return At(node).open; }
  // By what this client knows.
  [[nodiscard]] bool Quarantined(NodeIndex node) const { return At(node).quarantined; }
  // What tells an open node from the others, alike at every client whatever the order of its list.
  [[nodiscard]] std::uint8_t IndexInStore(NodeIndex node) const {
    const std::optional<Sentinel>& sentinel = At(node).sentinel;
    return sentinel ? static_cast<std::uint8_t>(sentinel->index) : 0;
  }
  // A majority of the configured N is open, out of quarantine, and no problem is in the way.
  [[nodiscard]] bool Available() const { return available_; }
  // The main reason, when not Available().
  [[nodiscard]] QuorumFailure WhyUnavailable() const { return why_; }
  // What keeps the whole store from use, in one line with what to do; nothing while it can be used.
  [[nodiscard]] std::optional<Error> Problem() const { return problem_; }
  [[nodiscard]] Millis max_ttl() const;    // the store's; options.max_ttl before it is known
  [[nodiscard]] Instant NextTime() const;  // call OnTime then; Instant::max() for never
  [[nodiscard]] NodeStatus Status(NodeIndex node, Now now) const;
  // A quorum is of the store, in quarantine or not.
  [[nodiscard]] bool IsEstablished() const;
  // kImmediate and kForced: all N are complete members of one store.
  [[nodiscard]] bool Created() const;
  [[nodiscard]] std::string store_id() const { return store_id_; }  // empty before it is known

 private:
  enum class Out : std::uint8_t { kNothing, kProbe, kWrite };

  struct Node {
    // What was read on this connection. `read` turns false when it can no longer be relied on.
    bool connected = false;
    bool read = false;
    std::string run_id;
    bool names_itself = false;  // by a run_id; else run_id is what the sentinel says
    std::string policy;
    std::string role;
    std::string mode;
    std::optional<std::string> raw;
    std::optional<Sentinel> sentinel;  // raw, decoded
    CallInfo raw_call;                 // the call that read raw
    Instant raw_since{};               // since when raw is what it is
    // What this process remembers, over disconnections.
    std::optional<Sentinel> member;  // the last complete sentinel with our N
    std::string counted_run_id;      // the last one for which OnRestartDetected was called
    std::string last_run_id;
    NodeClock clock;
    // Its clock was seen to step, or it was unfit: a quarantine from here is due.
    std::optional<WallTime> stepped;
    bool by_clock = false;          // stepped: for its clock
    bool clock_quarantine = false;  // the quarantine in force is for a step that we saw
    std::optional<Nanos> clock_offset;
    Instant offset_told = Instant::min();
    // The one command that is out, and the next ones.
    Out out = Out::kNothing;
    SentinelWrite written;
    bool want_probe = false;
    Instant probed_at{};
    Instant hold_until = Instant::min();  // a write had no effect: no other before then
    std::optional<SentinelWrite> pending;
    // For kImmediate and kForced: this text was here when all N were locked in; seen again since?
    std::optional<std::string> snapshot;
    bool probe_confirms = false;
    bool confirmed = false;
    // Decided by Evaluate.
    std::optional<Error> problem;
    bool blocks = false;   // the problem keeps the whole store from use
    bool refused = false;  // nothing may be written here
    bool unfit = false;    // by what it says of itself: left out where a quorum is without it
    bool open = false;
    bool quarantined = false;
    bool told_open = false;
    bool told_quarantined = false;
    std::string told_problem;

    explicit Node(Millis rebase) : clock(rebase) {}
    // It may be probed. What is to be written goes first: where an answer takes long, probes would
    // leave no turn.
    [[nodiscard]] bool Idle() const { return connected && out == Out::kNothing && !pending; }
    [[nodiscard]] bool Readable() const { return connected && read && !refused; }
    [[nodiscard]] bool Complete() const { return Readable() && sentinel && sentinel->complete; }
    [[nodiscard]] bool Forming() const { return Readable() && sentinel && !sentinel->complete; }
  };

  Node& At(NodeIndex node);
  [[nodiscard]] const Node& At(NodeIndex node) const;
  void Learn(Node& node, std::optional<std::string> raw, const CallInfo& call);
  void ObserveClock(NodeIndex index, const CallInfo& call);
  [[nodiscard]] Millis ProbeInterval() const;

  // store_members.cc: what is where, and what follows for each node and for the whole.
  void Evaluate(Now now);
  void FindRefusals();
  void FindStore();
  void FindGeneration();
  void FindForeignNodes();
  void FindSameIndex();
  void SetProblem(NodeIndex index, bool blocks, std::string code, std::string what,
                  std::string hint);
  [[nodiscard]] bool InStore(const Node& node) const;
  [[nodiscard]] bool Fits(const Sentinel& sentinel) const {  // it is of a store of so many nodes
    return sentinel.nodes == size();
  }
  [[nodiscard]] bool Belongs(const Node& node) const;
  [[nodiscard]] bool AllReadable() const;
  void DecideProblem(bool quorum);
  void Tell();

  // Quarantine: store_members.cc.
  [[nodiscard]] Millis QuarantineTime() const { return max_ttl() + 2 * options_.max_skew; }
  [[nodiscard]] std::optional<Instant> QuarantineEnd(const Node& node) const;
  void Renew(Node& node);
  void DecideWhichCount();

  // store_creation.cc
  void PlanCreation();
  void PlanForming();
  void PlanAdvance();
  [[nodiscard]] bool AllFormingOneStore() const;
  [[nodiscard]] bool SnapshotConfirmed();
  [[nodiscard]] std::string MemberHash() const;
  [[nodiscard]] std::string FormingTarget(const std::string& hash) const;
  [[nodiscard]] bool Abandoned(const Node& node) const;
  [[nodiscard]] bool MayCreate();
  [[nodiscard]] Millis FormerTtl() const;
  void Complete(Node& node);

  // store_repair.cc
  void PlanRepairs();
  void PlanEmpty();
  void PlanRaise();
  void Raise(const std::vector<NodeIndex>& empty, const std::vector<NodeIndex>& members);
  void PlanRejoin();
  // What the epochs of the members say together.
  struct Epochs {
    std::uint32_t lowest = UINT32_MAX;
    std::uint32_t highest = 0;
    bool raised = false;    // one is even
    bool unchanged = true;  // all, for so long that nobody goes on with a raise
  };
  [[nodiscard]] Epochs EpochsOfMembers() const;
  [[nodiscard]] std::uint64_t Tag() const;
  [[nodiscard]] bool OwnRaise(std::uint32_t epoch) const;
  // nullopt: there are no more numbers, and the problem says so.
  std::optional<std::uint32_t> NextRaise(std::uint32_t highest);
  void PlanAdmission(const std::vector<NodeIndex>& empty, std::uint32_t epoch);
  [[nodiscard]] bool Vacant(const Node& node) const;
  [[nodiscard]] bool Remembered(const Node& node) const;
  [[nodiscard]] bool OfThisList(const Node& node) const;
  [[nodiscard]] std::vector<int> MissingIndexes() const;
  void Write(Node& node, const Sentinel& sentinel, std::optional<Millis> quarantine_for);
  void WriteEpoch(Node& node, std::uint32_t epoch, std::optional<Millis> quarantine_for);

  LockOptions options_;
  StoreCreation creation_;
  Nonce own_id_;
  LockObserver* observer_;
  std::vector<Node> nodes_;
  Now now_{};

  std::string store_id_;  // the store that this client is in; empty: none, or they disagree
  // The raise that this client began: the epoch that all members had (0: not known any more), and
  // the one they get.
  std::uint32_t raised_from_ = 0;
  std::uint32_t raised_to_ = 0;
  std::uint32_t generation_ = 0;  // the one that makes a quorum, odd; 0: none
  bool creating_ = false;         // kImmediate, kForced: the go-ahead was given (and stays)
  bool overwritten_ = false;      // kForced: all N hold the new store
  bool snapshot_agreed_ = false;  // the snapshots were there together at one moment
  bool formed_ = false;           // this process wrote the beginnings of a store
  bool noted_created_ = false;
  bool available_ = false;
  bool told_available_ = false;
  std::optional<Error> problem_;
  QuorumFailure why_ = QuorumFailure::kUnreachable;
};

}  // namespace fencepost::locking
