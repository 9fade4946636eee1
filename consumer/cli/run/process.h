// The workers of one `fencepost run`, what shows them (log, HTTP server), a reload of their files,
// and their end.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/run/run_signals.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/fleet/fleet_watch.h"
#include "consumer/pipeline/options.h"
#include "consumer/worker/worker.h"
#include "metrics/http/http_server.h"
#include "metrics/log/log.h"
#include "metrics/page.h"
#include "metrics/status/fleet_page.h"
#include "metrics/status/history.h"
#include "metrics/status/shown_pipeline.h"
#include "metrics/traces/span_exporter.h"

namespace fencepost::cli {

// The exit code, once all workers are gone: librdkafka's threads that never end would run on under
// the process's static objects, so the process ends here then.
int EndWithKafka(int code);

// Whether its file has anything of observe.traces; the first of the files that have, else the
// first.
bool SaysTraces(const consumer::PipelineOptions& pipeline);
const consumer::PipelineOptions& FirstOfTraces(
    const std::vector<consumer::PipelineOptions>& pipelines);

// The event file_warning of each.
void LogWarnings(metrics::Log& log, const std::vector<std::string>& warnings);

class Process {
 public:
  struct Hooks {
    decltype(metrics::PipelineInfo::on_processed) on_processed;
    std::function<void()> on_give_up;     // the process ends without its destructors
    std::vector<std::string_view> muted;  // LogOptions
  };
  // `files`: where the pipelines came from, for a reload; empty: there is none.
  Process(std::vector<consumer::PipelineOptions> pipelines, PipelineFiles files,
          const std::string& worker, Hooks hooks = {});
  ~Process();

  // Errors: those of HttpServer::Start.
  tl::expected<void, Error> StartHttp(const std::string& address);
  // Starts the workers; returns the exit code once all have ended after a signal or a failure.
  int RunUntilStopped(const RunSignals& signals);
  metrics::Log& log() { return log_; }
  [[nodiscard]] std::string http() const { return server_ ? server_->bound() : ""; }
  [[nodiscard]] consumer::WorkerStatus StatusOf(std::size_t pipeline) const {  // any thread
    return workers_[pipeline]->Status();
  }

 private:
  // What the status page shows beside the workers' own word.
  struct Watched {
    metrics::PipelineMetrics* metrics;
    std::vector<std::pair<std::string, std::string>> settings;  // guarded by mutex_
    struct Histories {
      metrics::History finished, dead_letters, conflicts;
    };
    std::unique_ptr<Histories> last_minute = std::make_unique<Histories>();
  };

  [[nodiscard]] metrics::ExportOptions StartTraces();
  RunSignals::Woken WaitForTheEnd(const RunSignals& signals);
  void Reload();
  void Apply(std::size_t worker, const consumer::PipelineOptions& fresh);
  void AwaitEnd(const RunSignals& signals, bool signalled);
  [[noreturn]] void GiveUp(std::chrono::steady_clock::duration waited);
  metrics::ControlAnswer OnPost(std::string_view path, std::string_view body);
  // explain, try-replay, replay.
  [[nodiscard]] metrics::ControlAnswer AboutRecord(std::size_t pipeline, std::string_view what,
                                                   std::string_view record) const;
  [[nodiscard]] metrics::ProbeResult Liveness() const;
  [[nodiscard]] metrics::ProbeResult AllReady() const;
  void TakeSamples() const;
  [[nodiscard]] metrics::ShownProcess Shown() const;
  [[nodiscard]] std::unique_ptr<consumer::FleetWatch> MakeFleet(const std::string& address) const;
  [[nodiscard]] metrics::ShownFleet ShownFleet() const;

  std::vector<consumer::PipelineOptions> pipelines_;
  const PipelineFiles files_;
  const std::string worker_;
  const std::function<void()> on_give_up_;
  metrics::Log log_;
  metrics::MetricsPage page_;
  std::unique_ptr<metrics::SpanExporter> exporter_;  // none: there are no traces
  std::vector<std::unique_ptr<consumer::Worker>> workers_;
  mutable std::mutex mutex_;
  mutable std::mutex about_record_;  // one at a time
  std::vector<Watched> watched_;     // of each worker
  std::vector<Error> errors_;
  std::atomic<bool> stopping_{false}, ended_{false};
  std::unique_ptr<consumer::FleetWatch> fleet_;
  std::unique_ptr<metrics::HttpServer> server_;  // last: it asks all the others
};

}  // namespace fencepost::cli
