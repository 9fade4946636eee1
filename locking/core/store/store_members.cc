// What stays on the nodes, and what follows from it: which store this is, who belongs to it, who
// is open or quarantined, and what keeps the whole from use.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "locking/base/planted.h"
#include "locking/core/store/store.h"

namespace fencepost::locking {
namespace {

bool IsValidNodeCount(int nodes) { return nodes % 2 == 1 && nodes <= kMaxNodes; }

}  // namespace

void Store::Evaluate(Now now) {
  now_ = now;
  FindRefusals();
  FindStore();
  FindGeneration();
  FindForeignNodes();
  FindSameIndex();
  if (IsValidNodeCount(size())) {
    if (store_id_.empty()) {
      PlanCreation();
    } else {
      PlanRepairs();
    }
  }
  DecideWhichCount();
  Tell();
}

void Store::SetProblem(NodeIndex index, bool blocks, std::string code, std::string what,
                       std::string hint) {
  Node& node = At(index);
  if (node.problem && (node.blocks || !blocks)) return;  // the first of the graver kind stays
  node.problem = Error{std::move(code), std::move(what),
                       fmt::format("lock node {}", NodeLetter(index)), std::move(hint)};
  node.blocks = blocks;
}

// What a node says of itself that rules it out, whatever its sentinel says.
void Store::FindRefusals() {
  for (NodeIndex i = 0; i < size(); ++i) {
    Node& node = At(i);
    node.problem.reset();
    node.blocks = node.refused = node.unfit = false;
    node.pending.reset();
    if (!node.connected || !node.read) continue;
    if (!IsRunId(node.run_id)) {
      SetProblem(i, true, "bad_run_id", "INFO shows no run_id of 40 characters",
                 "use a Redis server from version 7 on, and grant +info");
    } else if (node.role != "master") {
      SetProblem(i, true, "not_a_primary", fmt::format("its role is '{}'", node.role),
                 "list independent primaries; a replica forgets locks at a failover");
    } else if (node.mode == "cluster") {
      SetProblem(i, true, "cluster_node", "it is part of a Redis Cluster (cluster_enabled:1)",
                 "list independent primaries, which have cluster-enabled no");
    } else if (node.raw && !node.sentinel && creation_ != StoreCreation::kForced) {
      SetProblem(i, true, "bad_sentinel",
                 fmt::format("the value of {} is no sentinel", kSentinelKey),
                 "find who wrote it; DEL it, and the node is put in quarantine and repaired");
    } else if (node.policy != "noeviction" && !Planted("evicting_node_counts")) {
      SetProblem(i, options_.quarantine, "eviction_policy",
                 node.policy.empty() ? "INFO does not show its maxmemory-policy"
                                     : fmt::format("its maxmemory-policy is '{}', which evicts "
                                                   "live locks",
                                                   node.policy),
                 options_.quarantine
                     ? "CONFIG SET maxmemory-policy noeviction, and in its redis.conf"
                     : "the ledger decides, so it counts; each lock that it evicts may cost "
                       "double work: noeviction is better");
    }
    node.unfit = node.blocks;
    for (NodeIndex j = 0; j < size(); ++j) {
      const Node& other = At(j);
      if (j == i || !other.connected || !other.read || other.run_id != node.run_id) continue;
      SetProblem(i, true, "same_node_twice",
                 fmt::format("it is the same server as node {} (run_id {})", NodeLetter(j),
                             node.run_id.substr(0, 8)),
                 "list each node once");
    }
    node.refused = node.blocks;
  }
}

bool Store::InStore(const Node& node) const {
  return node.Complete() && Fits(*node.sentinel) && !store_id_.empty() &&
         node.sentinel->store_id == store_id_;
}

bool Store::Belongs(const Node& node) const {
  const bool current = InStore(node) && Generation(node.sentinel->epoch) == generation_;
  return (current || (Planted("ended_generation_counts") && InStore(node))) && !node.blocks;
}

bool Store::IsEstablished() const {
  const auto members = std::ranges::count_if(nodes_, [this](const Node& node) {
    return InStore(node) && Generation(node.sentinel->epoch) == generation_;
  });
  return members >= Quorum(size());
}

bool Store::AllReadable() const { return std::ranges::all_of(nodes_, &Node::Readable); }

// The store is the one that most nodes name: the connected ones by what is there, the others by
// what they said last. Where two are named, only a majority of N decides.
void Store::FindStore() {
  store_id_.clear();
  if (creation_ == StoreCreation::kForced && !overwritten_) return;
  std::map<std::string, int> votes;
  bool seen = false;  // memory alone makes no store
  for (const Node& node : nodes_) {
    if (node.connected && node.read) {
      if (!node.Complete() || !Fits(*node.sentinel)) continue;
      ++votes[node.sentinel->store_id];
      seen = true;
    } else if (node.member) {
      ++votes[node.member->store_id];
    }
  }
  if (votes.empty() || (!seen && AllReadable())) return;
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (votes.size() == 1 || most->second >= Quorum(size())) store_id_ = most->first;
}

void Store::FindGeneration() {
  std::map<std::uint32_t, int> seen;
  for (const Node& node : nodes_) {
    if (InStore(node)) ++seen[Generation(node.sentinel->epoch)];
  }
  generation_ = 0;
  for (const auto& [generation, nodes] : seen) {
    if (nodes >= Quorum(size()) || seen.size() == 1) generation_ = generation;
  }
}

void Store::FindForeignNodes() {
  if (creation_ == StoreCreation::kForced && !overwritten_) return;
  const bool vacancy = std::ranges::any_of(
      nodes_, [this](const Node& node) { return node.Readable() && Vacant(node); });
  for (NodeIndex i = 0; i < size(); ++i) {
    const Node& node = At(i);
    if (node.Forming() && !store_id_.empty() && node.sentinel->store_id != store_id_ &&
        !OfThisList(node)) {
      SetProblem(i, true, "foreign_store",
                 fmt::format("it holds the beginnings of a lock store other than {}", store_id_),
                 fmt::format("check that all clients list the same nodes, then DEL {} there",
                             kSentinelKey));
    }
    if (!node.Complete()) continue;
    const Sentinel& sentinel = *node.sentinel;
    if (sentinel.nodes != size()) {
      SetProblem(
          i, true, "foreign_store",
          fmt::format("it belongs to a lock store of {} node{}, but {} {} listed", sentinel.nodes,
                      sentinel.nodes == 1 ? "" : "s", size(), size() == 1 ? "is" : "are"),
          "list all nodes of the store, and no others; to change their number, stop all "
          "workers and run `fencepost locks init FILE --force`");
    } else if (sentinel.store_id != store_id_) {
      SetProblem(
          i, true, "foreign_store",
          fmt::format("it belongs to lock store {}, other nodes to another", sentinel.store_id),
          "list the nodes of one store; FLUSHALL a node that is to change stores");
    } else if (generation_ == 0 || Generation(sentinel.epoch) > generation_) {
      SetProblem(
          i, false, "unfinished_replacement",
          fmt::format("its epoch {} is not that of a majority", sentinel.epoch),
          fmt::format("it passes when a node is being replaced; else DEL {} there", kSentinelKey));
    } else if (Generation(sentinel.epoch) < generation_) {
      SetProblem(i, !vacancy, "replaced",
                 fmt::format("it was replaced in lock store {}: its epoch is {}, the others' {}",
                             store_id_, sentinel.epoch, generation_),
                 "list the nodes that the other clients list; or FLUSHALL it to take it back");
    }
  }
}

void Store::FindSameIndex() {
  for (NodeIndex i = 0; i < size(); ++i) {
    for (NodeIndex j = 0; j < i; ++j) {
      if (!InStore(At(i)) || !InStore(At(j)) || At(i).unfit || At(j).unfit) continue;
      if (At(i).sentinel->index != At(j).sentinel->index) continue;
      if (Generation(At(i).sentinel->epoch) != Generation(At(j).sentinel->epoch)) continue;
      for (const auto& [one, other] : {std::pair(i, j), std::pair(j, i)}) {
        SetProblem(one, true, "same_index",
                   fmt::format("it and node {} have the same place in lock store {}",
                               NodeLetter(other), store_id_),
                   fmt::format("one of the two replaced the other: list only one, or DEL {} on one",
                               kSentinelKey));
      }
    }
  }
}

// --- quarantine -------------------------------------------------------------------------------

// A node that may have forgotten leases takes part, but does not count until every lease that it
// may have forgotten has ended (PROTOCOL.md, invariant 12): when its server restarted or its clock
// was stepped, and when the sentinel asks for more than a whole quarantine. max_ttl rises to what
// another member has, or to what a client needs whose ledger decides; a quarantine that runs by the
// lower one begins again.
void Store::Renew(Node& node) {
  const Sentinel& now = *node.sentinel;
  Sentinel renewed = now;
  renewed.run_id = node.run_id;
  renewed.max_ttl = std::max(max_ttl(), options_.quarantine ? Millis(0) : options_.ttl);
  // The sentinel may have been written after TIME was read, within the same call.
  const Nanos slack = node.raw_call.received_at - node.raw_call.sent_at;
  const Millis whole = renewed.max_ttl + 2 * options_.max_skew;
  const WallTime latest = node.raw_call.node_time + whole + std::chrono::ceil<Millis>(slack);
  const bool longer = renewed.max_ttl > now.max_ttl;
  const bool runs = now.quarantine_until > node.raw_call.node_time;
  if (now.run_id != node.run_id || node.stepped || now.quarantine_until > latest ||
      (longer && runs)) {
    Write(node, renewed, whole);
  } else if (longer) {
    Write(node, renewed, std::nullopt);
  }
}

std::optional<Instant> Store::QuarantineEnd(const Node& node) const {
  if (!node.sentinel) return std::nullopt;
  return node.clock.SurelyAt(node.sentinel->quarantine_until);
}

void Store::DecideWhichCount() {
  int open = 0;
  int counting = 0;
  bool by_clock = false;
  for (Node& node : nodes_) {
    // What was read may be relied on for as long as a node that was admitted since cannot count.
    const bool fresh = now_.boot - node.raw_call.sent_at <= QuarantineTime();
    node.open =
        Belongs(node) && fresh && (node.sentinel->run_id == node.run_id || !options_.quarantine);
    const std::optional<Instant> end = QuarantineEnd(node);
    const bool forgot = node.stepped || (end && *end > now_.boot);
    node.quarantined = node.open && forgot && options_.quarantine;
    if (!node.quarantined) node.clock_quarantine = false;
    const bool clock = (node.stepped && node.by_clock) || node.clock_quarantine;
    by_clock = by_clock || (node.open && clock);
    open += node.open ? 1 : 0;
    counting += node.open && !node.quarantined ? 1 : 0;
  }
  DecideProblem(counting >= Quorum(size()));
  available_ = !problem_ && counting >= Quorum(size());
  why_ = QuorumFailure::kUnreachable;
  if (open >= Quorum(size())) {
    why_ = by_clock ? QuorumFailure::kClock : QuorumFailure::kQuarantined;
  }
  if (problem_ && problem_->code != "store_incomplete") why_ = QuorumFailure::kPolicy;
}

void Store::DecideProblem(bool quorum) {
  problem_.reset();
  if (!IsValidNodeCount(size())) {
    problem_ = Error{"bad_nodes", fmt::format("{} lock nodes are listed", size()), "",
                     "list 1, 3, 5 or 7 independent primaries"};
    return;
  }
  for (const Node& node : nodes_) {
    // One that is unfit is as one that is away, as long as the others are enough. Faults of the
    // list are a person's to fix.
    if (node.blocks && !(node.unfit && quorum)) {
      problem_ = node.problem;
      return;
    }
  }
  const bool empty = std::ranges::any_of(
      nodes_, [](const Node& node) { return node.Readable() && !node.Complete(); });
  if (!store_id_.empty() || !empty) return;
  std::string missing;
  for (NodeIndex i = 0; i < size(); ++i) {
    if (!At(i).connected)
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", NodeLetter(i));
  }
  if (!missing.empty()) {
    problem_ = Error{"store_incomplete",
                     fmt::format("there is no lock store yet, and of its {} nodes cannot be "
                                 "reached: {}",
                                 size(), missing),
                     "", "start them: a new store needs all of its nodes once"};
  } else if (creation_ == StoreCreation::kNever) {
    problem_ = Error{"no_store", "there is no lock store on these nodes", "",
                     "`fencepost locks init` makes one"};
  }
}

void Store::Tell() {
  for (NodeIndex i = 0; i < size(); ++i) {
    Node& node = At(i);
    if (node.open != node.told_open || node.quarantined != node.told_quarantined) {
      node.told_open = node.open;
      node.told_quarantined = node.quarantined;
      observer_->OnNode(i, node.open, node.quarantined);
    }
    const std::string problem = node.problem ? node.problem->Line() : "";
    if (problem != node.told_problem && node.connected) {
      if (!problem.empty()) observer_->OnNote(Severity::kWarn, "node_problem", problem);
      node.told_problem = problem;
    }
  }
  const bool all = std::ranges::all_of(nodes_, &Node::open);
  const bool quarantined = std::ranges::any_of(nodes_, &Node::quarantined);
  if (formed_ && all && !noted_created_) {
    noted_created_ = true;
    std::string text = fmt::format("a new lock store was created ({})", store_id_);
    if (quarantined) {
      text += fmt::format(
          "; its locks can be acquired in {} s; a store that `fencepost locks init` "
          "creates can be used at once",
          std::chrono::ceil<std::chrono::seconds>(QuarantineTime()).count());
    }
    observer_->OnNote(Severity::kInfo, "store_created", text);
  }
  if (available_ != told_available_) {
    told_available_ = available_;
    observer_->OnQuorum(available_);
  }
}

}  // namespace fencepost::locking
