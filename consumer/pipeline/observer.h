// What the consumer reports to metrics and log. Thread notes at each group; implementations must be
// quick, must not block, and must not call back.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/record/dead_letter.h"
#include "consumer/record/record.h"
#include "consumer/trace/span.h"
#include "locking/core/observer.h"

namespace fencepost::consumer {

enum class ProcessedResult : std::uint8_t {
  kDone,
  kSkipped,
  kDeadLettered,
  kFailed,
  kNoOutput,
  kFiltered
};
enum class DedupeSource : std::uint8_t { kLock, kLedger };
enum class RetryStage : std::uint8_t { kLock, kHandler, kOutput, kDeadLetter };
enum class RebalanceEvent : std::uint8_t { kAssigned, kRevoked, kLost };
enum class CommitResult : std::uint8_t { kCommitted, kRejected, kFailed };

// The record that an event is about, as far as it is known: fields of their own in the log.
struct AboutRecord {
  TopicPartition where;
  Offset offset = -1;
  std::string record_id;    // as stored; empty: it has none
  std::uint64_t token = 0;  // 0: none
  int attempt = 0;          // handler calls begun; 0: none
  TraceContext trace{};     // the record's span, where there are traces
  auto operator<=>(const AboutRecord&) const = default;
};

struct WriteItem;  // consumer/flow/ports/ports.h

class ConsumerObserver {
 public:
  virtual ~ConsumerObserver() = default;

  // Engine thread:
  virtual void OnConsumed(std::size_t /*records*/) {}
  // A record, with its dead letter or with what a handler made of it; its views are good during the
  // call. `lost`: a row with a higher fence_by stayed in its place; if skipped, an id conflict.
  virtual void OnProcessed(ProcessedResult, const WriteItem&, bool /*lost*/ = false) {}
  virtual void OnDedupeSkip(DedupeSource) {}
  // Of a pipeline with a ledger, which leaves its leases behind, once the ledger has said
  // whose the name is: a round that found it held (kContended), or held by a lease that was left
  // behind (kDone); a lease that took over from another which had not written the effect.
  virtual void OnRound(locking::RoundResult, Nanos /*took; 0: told before*/) {}
  virtual void OnTakeover() {}
  // An effect was written after its lease had ended, where no DONE mark tells the lock core of it.
  virtual void OnCompletedAfterExpiry() {}
  virtual void OnUnlocked() {}  // goes on without a lease (lock.on_unavailable: proceed)
  virtual void OnOutputFencing() {}
  virtual void OnRowLost() {}  // a row of the record lost to one with a higher fence
  virtual void OnIdConflict() {}
  virtual void OnInvariant(locking::Invariant) {}
  virtual void OnInFlight(std::size_t /*records*/, std::size_t /*bytes*/) {}
  virtual void OnBackpressure(Nanos /*time spent paused since the last call*/) {}
  virtual void OnProgress(std::chrono::milliseconds /*unix time*/) {}
  // `kept`: its trace, if that is kept.
  virtual void OnEndToEnd(Nanos /*record timestamp to effect*/, const TraceContext& /*kept*/ = {}) {
  }
  virtual void OnRetry(RetryStage) {}
  virtual void OnDeadLetter(DeadLetterReason) {}  // published, and acknowledged
  // Lag: records up to the partition's end that are not finished; removed where it was revoked.
  virtual void OnLag(const TopicPartition&, std::int64_t /*records*/) {}
  virtual void OnPartitionGone(const TopicPartition&) {}
  // The oldest unfinished record of a partition, and since when it has been that; offset -1: none.
  virtual void OnOldest(const TopicPartition&, Offset, Nanos /*for so long*/) {}
  virtual void OnOldestUnprocessed(std::chrono::milliseconds /*unix time; 0: none*/) {}
  virtual void OnCommitGap(std::int64_t /*finished records not committed yet*/) {}
  virtual void OnPartitions(std::size_t /*assigned*/, std::size_t /*paused*/) {}
  // Kafka thread:
  virtual void OnCommit(CommitResult, Nanos /*took*/) {}
  virtual void OnRebalance(RebalanceEvent) {}
  virtual void OnRebalanceTook(Nanos) {}
  // Output thread:
  virtual void OnWrite(Nanos /*took*/, std::size_t /*batch*/) {}
  virtual void OnWriteSplit() {}  // a transaction in parts, for records that the output refuses
  // Any thread:
  // Of all partitions of the topics, by what the group has committed: about each ten seconds.
  virtual void OnGroupLag(std::int64_t /*records*/) {}
  // One handler call, however it ended; `sampled`: the trace of it, or of one of its records.
  virtual void OnHandled(Nanos /*took*/, const TraceContext& /*sampled*/ = {}) {}
  virtual void OnDeadLetterError() {}  // one that was not acknowledged; it is tried again
  virtual void OnNote(locking::Severity, std::string_view /*event*/, std::string_view /*text*/) {}
  // The same of one record. `text` does not name it, so that repeats can be told.
  virtual void OnRecordNote(locking::Severity severity, std::string_view event,
                            std::string_view text, const AboutRecord& record) {
    OnNote(severity, event, SourceText(record.where, record.offset) + ": " + std::string(text));
  }
  virtual void OnReady(bool /*ready*/) {}
  // Engine thread: spans that have ended, of traces that are kept.
  virtual void OnSpans(std::vector<Span> /*spans*/) {}
};

}  // namespace fencepost::consumer
