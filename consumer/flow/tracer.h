// The traces of a flow (observe.traces): which of them are kept, and the spans of those. Each
// record has one, the one of its headers or a new one; what it went through is noted as it happens
// (record_trace.h), and becomes spans when the record is at its end, if the trace is sampled or the
// record was slow, failed, or was contended. Sans-IO; the engine thread's. Without traces nothing
// is noted.
//
// The spans of a record: `process` of the record, and within it `lock`, `look up`, `handle`,
// `write`, `dead letter`, `commit`, each time that it came to it. A transaction is a span of a
// trace of its own, linked to the records that it wrote and whose traces are kept, and they to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/flow/flow_options.h"
#include "consumer/flow/state/in_flight.h"
#include "consumer/pipeline/observer.h"
#include "consumer/trace/span.h"
#include "locking/core/lock/lock_core.h"

namespace fencepost::consumer {

using locking::Now;

class Tracer {
 public:
  // Records whose commit is awaited; of more there is no such span.
  static constexpr std::size_t kMostUncommitted = 1024;

  Tracer(const FlowOptions& options, const locking::LockCore::Random& random,
         ConsumerObserver* observer)
      : options_(options), random_(random), observer_(observer) {}

  // Before each input of the flow: it is what happens now.
  void At(Now now) { clock_ = now.boot; }
  // It has been delivered. Before its first stage.
  void Begin(InFlight& record);
  // The outcomes of the batch are known, and its records still as they were.
  void OnWritten(const WriteBatch& batch, const std::vector<WriteOutcome>& outcomes, Now now);
  // It is at its end here.
  void End(InFlight& record, ProcessedResult result, Now now);
  // The group took them, in a request that was sent then.
  void OnCommitted(const std::vector<PartitionOffset>& offsets, Instant sent, Now now);
  // It will be kept, if it ended now.
  [[nodiscard]] bool Keeps(const InFlight& record, Now now) const;

 private:
  struct Uncommitted {
    PartitionIndex partition = 0;
    AssignmentEpoch epoch = 0;
    Offset offset = 0;
    TraceContext context;
  };

  [[nodiscard]] bool on() const { return !options_.traces.endpoint.empty(); }
  TraceContext NewTrace();
  [[nodiscard]] Span SpanOf(const InFlight& record, ProcessedResult result, Now now) const;
  void AddSteps(const InFlight& record, Now now, std::vector<Span>& spans) const;

  const FlowOptions& options_;
  const locking::LockCore::Random& random_;
  ConsumerObserver* const observer_;
  Instant clock_{};
  std::uint64_t seed_ = 0;  // drawn with the first trace
  std::uint64_t made_ = 0;  // ids
  std::vector<Uncommitted> uncommitted_;
};

}  // namespace fencepost::consumer
