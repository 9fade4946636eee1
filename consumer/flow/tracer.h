// The traces of a flow (observe.traces): which of them are kept, and the spans of those. Each
// record has one, the one of its headers or a new one; what it went through is noted as it happens
// (record_trace.h), and becomes spans when the record is at its end, if the trace is sampled or the
// record was slow (in the hands of others: what waits for other records is not), failed, or was
// contended. Sans-IO; the engine thread's. Without traces nothing
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
#include "consumer/flow/state/assignment.h"
#include "consumer/flow/state/in_flight.h"
#include "consumer/pipeline/observer.h"
#include "consumer/trace/span.h"
#include "locking/core/lock/lock_core.h"

namespace fencepost::consumer {

using locking::Now;

class Tracer {
 public:
  Tracer(const FlowOptions& options, const locking::LockCore::Random& random,
         ConsumerObserver* observer)
      : options_(options), random_(random), observer_(observer) {}

  // Before each input of the flow: it is what happens now.
  void At(Now now);
  // It has been delivered. Before its first stage.
  void Begin(InFlight& record);
  // The outcomes of the batch are known, and its records still as they were.
  void OnWritten(const WriteBatch& batch, const std::vector<WriteOutcome>& outcomes);
  // It is at its end here: done, skipped, dead_lettered, failed, no_output, or given_back. `error`:
  // why it failed, without anything of it.
  void End(InFlight& record, std::string_view result, std::string_view error = "");
  // The group took what is before `next`, in a request that was sent then.
  void OnCommitted(Assignment& partition, Offset next, Instant sent);
  // It will be kept, if it ended now.
  [[nodiscard]] bool Keeps(const InFlight& record) const;

 private:
  [[nodiscard]] bool on() const { return !options_.traces.endpoint.empty(); }
  TraceContext NewTrace();
  [[nodiscard]] Nanos Unix(Instant at) const { return at.time_since_epoch() + wall_; }
  [[nodiscard]] Span SpanOf(const InFlight& record, std::string_view result,
                            std::string_view error) const;
  void Describe(Stage stage, Span& span) const;
  void AddSteps(const InFlight& record, std::vector<Span>& spans) const;

  const FlowOptions& options_;
  const locking::LockCore::Random& random_;
  ConsumerObserver* const observer_;
  Instant clock_{};
  Nanos wall_{0};           // of the wall clock since that of clock_
  std::uint64_t seed_ = 0;  // drawn with the first trace
  std::uint64_t made_ = 0;  // ids
};

}  // namespace fencepost::consumer
