// Takes the spans of a process and sends them to a collector by OTLP over HTTP, in batches, on a
// thread of its own. Nothing waits for it: what finds no room in its queue, and what no collector
// takes, is dropped and counted (fencepost_spans_dropped_total).
//
// A batch is what max_batch or `delay` make of it. It is sent again after 429, 502, 503, 504 and
// where there was no answer (export_retry.h); after any other answer it is dropped. The log has
// each problem, by its status or curl's code, at most once a minute, and never a header's value or
// the endpoint's path.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "consumer/trace/span.h"
#include "metrics/log/log.h"
#include "metrics/metric_definitions.h"
#include "metrics/traces/export_options.h"
#include "metrics/traces/export_retry.h"
#include "metrics/traces/otlp.h"
#include "metrics/traces/trace_post.h"

namespace fencepost::metrics {

class SpanExporter {
 public:
  static constexpr std::chrono::seconds kStopWithin{2};

  // The options are on. The log (nullptr: none) and the counters outlive it.
  static std::unique_ptr<SpanExporter> Start(ExportOptions options, const std::string& version,
                                             const std::string& worker, SpanCells& cells, Log* log);
  ~SpanExporter();  // Stop
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Spans that belong together: all are taken, or none. Any thread.
  void Put(std::vector<consumer::Span> spans);
  // Sends what waits, within kStopWithin; the rest is dropped. Later spans are dropped, too.
  void Stop();

 private:
  using Moment = ExportRetry::Moment;
  using Batch = std::vector<consumer::Span>;
  SpanExporter(ExportOptions options, const std::string& version, const std::string& worker,
               SpanCells& cells, Log* log);
  void Run();
  Batch Take();
  void Send(const Batch& batch);
  void OnTaken(const Batch& batch, const TracePost::Answer& answer);
  void OnRefused(const Batch& batch, int status, std::string_view said);
  void Drop(std::size_t spans, SpanDrop why);
  void DropTheRest();
  bool WaitBefore(Moment next);
  void WaitAWhile(std::unique_lock<std::mutex>& lock, Moment next);
  [[nodiscard]] Moment StopMoment() const;
  void TellOfFullQueue();
  // `number`: of the problem within its event.
  void Tell(locking::Severity severity, std::string_view event, int number, std::string_view text);

  const ExportOptions options_;
  const std::string shown_;  // the endpoint
  const TraceSource source_;
  SpanCells& cells_;
  Log* const log_;
  TracePost post_;
  ExportRetry retry_;
  std::map<std::pair<std::string_view, int>, Moment> told_;  // event and number
  std::int64_t full_told_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<consumer::Span> queue_;  // guarded by mutex_, as are
  Moment oldest_{};                   // when the first of them came
  Moment stop_at_ = Moment::max();    // sooner: it stops

  std::thread thread_;  // last: it uses all the others
};

}  // namespace fencepost::metrics
