// Why a pipeline is not ready, so that /ready answers 503, or what is to be known of one that is.
// Reasons are values: code decides by the code of a reason and by its fields, never by a sentence,
// which is made where it is shown. Pure functions; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost::consumer {

// In the order of their gravity: what ends the worker, what no record can be finished without, then
// Kafka, since a rebalance passes and a lost quorum may not; last what holds up no more than some.
enum class ReasonCode : std::uint8_t {
  kStarting,   // the worker has not looked yet
  kStopping,   // it ends with an error; detail: which
  kDraining,   // it was told to stop
  kPaused,     // it was told to pause
  kLockStore,  // detail: what is wrong with the lock store, or with the list of its nodes
  kLockTtl,    // the nodes refuse every lease: `span` is lock.ttl, `limit` the store's max_ttl
  kLockClock,
  kLockQuarantine,  // span: for so long, where it is known; detail: which nodes are away; nodes
  kLockNodes,       // some of those that a quorum would need have a problem
  kNoQuorum,        // detail: which nodes are away
  kLockConnecting,
  kOutput,  // detail: what it says
  kOutputConnecting,
  kHandler,      // it fails for several records, or refuses them; detail: how
  kDeadLetters,  // detail: why they cannot be published
  kAllRefused,   // detail: the whole sentence
  kKafka,        // detail: what it waits for
  kKafkaConnecting,
  kKafkaJoining,
  kKafkaRebalancing,
  // Remarks: the pipeline may be ready with them.
  kUnlocked,           // records go on without a lease; detail: why none can be acquired
  kStalled,            // detail: the oldest record, and what it waits for
  kHandlerRemark,      // it fails for a record, or for some; detail: for which, and how
  kOutputRemark,       // it refuses some that may pass later; detail: which, and why
  kDeadLettersRemark,  // detail
  kKafkaRemark         // detail
};

struct Reason {
  ReasonCode code = ReasonCode::kStarting;
  std::string detail;                 // one line from below: an error, a record; may be empty
  std::chrono::milliseconds span{0};  // what for: see the code
  std::chrono::milliseconds limit{0};
  int nodes = 0;  // that are in quarantine
  bool operator==(const Reason&) const = default;
};

// The output, the dead letters or Kafka. Connecting and joining (Kafka's part, until it has a place
// in the group) are to be expected at the start of a worker; only Kafka's part rebalances.
enum class PartPhase : std::uint8_t { kConnecting, kJoining, kRebalancing, kDown, kUp };
struct PartState {
  PartPhase phase = PartPhase::kConnecting;
  std::string reason;  // why it is down; of one that is up: what is to be known all the same
  [[nodiscard]] bool up() const { return phase == PartPhase::kUp; }
  bool operator==(const PartState&) const = default;
};

// What a worker is made of, as far as its readiness hangs on it.
struct PipelineState {
  std::string failure;         // what ends the worker; empty: nothing does
  bool draining = false;       // it was told to stop
  bool paused = false;         // it was told to take nothing new
  std::optional<Reason> lock;  // nothing: leases can be acquired
  PartState output;
  std::string handler;        // how its service fails; empty: it does not
  std::string failing;        // for which records it fails all the same; may be empty
  std::string written_again;  // which records the output refuses, and may take yet; may be empty
  PartState dead_letters;
  PartState kafka;
  std::string refused;  // the sentence that says that every record is refused; may be empty
  std::string stalled;  // the oldest record, where it has stalled
};

// All reasons, the gravest first. A worker that stops leaves the group, so nothing is said of
// Kafka; and while nothing can be written, nothing shows whether all records are refused.
std::vector<Reason> ReasonsOf(PipelineState state);

bool IsRemark(const Reason& reason);     // it may be ready all the same
bool IsBeginning(const Reason& reason);  // to be expected of a worker that has just begun

// "lock: no quorum of lock nodes": the part, and what is the matter with it.
std::string Sentence(const Reason& reason);
// Those that say why it is not ready, by "; ": empty when it is.
std::string WhyNotReady(const std::vector<Reason>& reasons);

}  // namespace fencepost::consumer
