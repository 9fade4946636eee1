#include "consumer/cli/run/process.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "config/text/variables.h"
#include "consumer/cli/run/free_memory.h"
#include "consumer/cli/run/own_command.h"
#include "consumer/cli/run/reload.h"
#include "consumer/cli/shared/command.h"
#include "consumer/fleet/fleet_look.h"
#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/worker/worker_parts.h"
#include "locking/base/random.h"
#include "locking/base/types.h"
#include "metrics/status/status_json.h"
#include "metrics/status/status_page.h"
#include "metrics/traces/otel_environment.h"

namespace fencepost::cli {
namespace {

using Clock = std::chrono::steady_clock;
using consumer::Millis;
using consumer::PipelineOptions;
using consumer::Worker;
using locking::Severity;

// A process that hangs is ended this long after the longest shutdown_timeout, or after a second
// signal.
constexpr std::chrono::seconds kLastResort{10};
constexpr std::chrono::seconds kLastResortHurried{5};
constexpr std::chrono::minutes kReturnMemoryEvery{1};
constexpr Millis kTick{1000};
constexpr Millis kCommandLimit{60'000};

// Of the pipelines, the longest.
Millis LongestShutdown(const std::vector<PipelineOptions>& pipelines) {
  Millis longest{0};
  for (const PipelineOptions& options : pipelines) {
    longest = std::max(longest, options.shutdown_timeout);
  }
  return longest;
}

metrics::LogOptions LogOptionsFor(const consumer::ObserveOptions& observe,
                                  const std::string& worker, const Process::Hooks& hooks) {
  metrics::LogOptions options = metrics::LogOptionsOf(observe, worker);
  options.muted = hooks.muted;
  return options;
}

}  // namespace

int EndWithKafka(int code) {
  if (consumer::rdkafka::ConsumersLeftBehind() == 0) return code;
  PrintError("a Kafka client did not stop, and ends with the process");
  std::fflush(nullptr);
  _exit(code);
}

void LogWarnings(metrics::Log& log, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    log.Write(Severity::kWarn, "", "file_warning", warning);
}

bool SaysTraces(const PipelineOptions& pipeline) {
  return std::ranges::any_of(pipeline.shown, [](const auto& setting) {
    return setting.first.starts_with("observe.traces");
  });
}

const PipelineOptions& FirstOfTraces(const std::vector<PipelineOptions>& pipelines) {
  const auto first = std::ranges::find_if(pipelines, SaysTraces);
  return first == pipelines.end() ? pipelines.front() : *first;
}

Process::Process(std::vector<PipelineOptions> pipelines, PipelineFiles files,
                 const std::string& worker, Hooks hooks)
    : pipelines_(std::move(pipelines)),
      files_(std::move(files)),
      worker_(worker),
      on_give_up_(std::move(hooks.on_give_up)),
      log_(LogOptionsFor(pipelines_.front().observe, worker, hooks)),
      page_({Version(), Commit()}) {
  const metrics::ExportOptions traces = StartTraces();
  for (PipelineOptions options : pipelines_) {
    options.observe.traces = traces.traces;
    const auto added = page_.Add({.name = options.name,
                                  .nodes = static_cast<int>(options.lock.redis.nodes.size()),
                                  .lock_ttl = options.lock.lock.ttl,
                                  .config_hash = options.config_hash,
                                  .on_processed = hooks.on_processed,
                                  .on_spans =
                                      [this](std::vector<consumer::Span> spans) {
                                        if (exporter_) exporter_->Put(std::move(spans));
                                      }},
                                 &log_);
    workers_.push_back(std::make_unique<Worker>(options, worker, *added, *added));
    watched_.push_back({.metrics = *added, .settings = options.shown});
  }
}

Process::~Process() = default;

// By the file that says something of traces, and the environment.
metrics::ExportOptions Process::StartTraces() {
  const PipelineOptions& first = FirstOfTraces(pipelines_);
  const auto given = [&first](std::string_view key) {
    const std::string path = fmt::format("observe.traces.{}", key);
    return std::ranges::any_of(first.shown, [&](const auto& setting) {
      return key.empty() ? setting.first.starts_with(path) : setting.first == path;
    });
  };
  metrics::ResolvedTraces resolved = metrics::ResolveTraces(
      {.options = first.observe.traces, .given = given}, config::Environment::Process().variable);
  for (const std::string& warning : resolved.warnings) {
    log_.Write(Severity::kWarn, "", "traces_variable", warning);
  }
  if (resolved.options.on()) {
    log_.Write(Severity::kInfo, "", "traces_on",
               "traces go to " + metrics::ShownEndpoint(resolved.options.traces.endpoint));
    exporter_ =
        metrics::SpanExporter::Start(resolved.options, Version(), worker_, page_.spans(), &log_);
  }
  return std::move(resolved.options);
}

tl::expected<void, Error> Process::StartHttp(const std::string& address) {
  const consumer::ObserveOptions& observe = pipelines_.front().observe;
  metrics::Endpoints endpoints{.metrics = [this] { return page_.Render(); },
                               .open_metrics = [this] { return page_.RenderOpenMetrics(); },
                               .live = [this] { return Liveness(); },
                               .ready = [this] { return AllReady(); },
                               .status = [this] { return StatusJson(Shown()); },
                               .page = [this] { return StatusPage(Shown()); },
                               .fragment = [this] { return StatusFragment(Shown()); }};
  fleet_ = MakeFleet(address);
  endpoints.fleet = [this] { return FleetPage(ShownFleet()); };
  endpoints.fleet_fragment = [this] { return FleetFragment(ShownFleet()); };
  endpoints.fleet_json = [this] { return FleetJson(ShownFleet()); };
  endpoints.control = {
      .access = observe.control,
      .token = observe.control_token,
      .post = [this](std::string_view path, std::string_view body) { return OnPost(path, body); },
      .page_token = fmt::format("{:016x}{:016x}", locking::RandomBits(), locking::RandomBits())};
  endpoints.control.page =
      [this, shown = metrics::PageControl{observe.control, endpoints.control.page_token}] {
        return StatusPage(Shown(), shown);
      };
  endpoints.tls = observe.tls;
  endpoints.auth = observe.auth;
  endpoints.note = [this](Severity severity, std::string_view event, std::string_view text) {
    log_.Write(severity, "", event, text);
  };
  const bool tls = !observe.tls.certificate.empty();
  auto server = metrics::HttpServer::Start(address, std::move(endpoints));
  if (!server) return tl::unexpected(server.error());
  server_ = std::move(*server);
  log_.Write(Severity::kInfo, "", "http_listening",
             fmt::format("listening on {}://{}", tls ? "https" : "http", server_->bound()));
  return {};
}

int Process::RunUntilStopped(const RunSignals& signals) {
  for (const auto& worker : workers_) {
    worker->OnFailure([&signals] { signals.Wake(); });
    if (const auto started = worker->Start(); !started) {
      PrintError(started.error().Line());
      return kUsage;
    }
  }
  const bool signalled = WaitForTheEnd(signals) == RunSignals::Woken::kStop;
  stopping_ = true;
  for (const auto& worker : workers_) worker->RequestStop();
  std::thread joiner([this, &signals] {
    for (const auto& worker : workers_) {
      if (auto error = worker->Join()) errors_.push_back(std::move(*error));
    }
    ended_ = true;
    signals.Wake();
  });
  AwaitEnd(signals, signalled);
  joiner.join();
  for (const Error& error : errors_) PrintError(error.Line());
  return errors_.empty() ? kOk : kFailed;
}

// What the process is to end by. The rates on the status page want a look at the counters once a
// second, and the log a look at what it holds back.
RunSignals::Woken Process::WaitForTheEnd(const RunSignals& signals) {
  auto return_memory_at = Clock::now() + kReturnMemoryEvery;
  for (;;) {
    TakeSamples();
    log_.WriteHeldBack();
    const auto woken = signals.Wait(static_cast<int>(kTick.count()));
    if (woken == RunSignals::Woken::kReload) {
      Reload();
    } else if (woken != RunSignals::Woken::kNot) {
      return woken;
    }
    if (Clock::now() < return_memory_at) continue;
    ReturnFreeMemory();
    return_memory_at = Clock::now() + kReturnMemoryEvery;
  }
}

// A file that is wrong, or gone, changes nothing.
void Process::Reload() {
  if (files_.files.empty()) return;
  std::vector<std::string> warnings;
  auto fresh = LoadPipelines(files_, &warnings);
  if (!fresh) {
    log_.Write(Severity::kError, "", "reload_failed",
               "the files have errors (see stderr): nothing was changed");
    return;
  }
  LogWarnings(log_, warnings);
  for (std::size_t i = 0; i < workers_.size(); ++i) Apply(i, (*fresh)[i]);
}

void Process::Apply(std::size_t worker, const PipelineOptions& fresh) {
  PipelineOptions& running = pipelines_[worker];
  const Changes changes = ChangesOf(running, fresh, worker == 0);
  log_.Write(changes.Whole() ? Severity::kInfo : Severity::kWarn, running.name, changes.Event(),
             changes.Text());
  if (changes.applied.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    TakeOver(changes, fresh, running);
    watched_[worker].settings = running.shown;
  }
  workers_[worker]->Tune(TuningOf(running));
  // What was set over HTTP stays until the file says something else.
  if (std::ranges::count(changes.applied, "observe.log.level") == 0) return;
  log_.SetLevel(metrics::LogOptionsOf(running.observe, worker_).level);
}

metrics::ControlAnswer Process::OnPost(std::string_view path, std::string_view body) {
  constexpr std::string_view kPipelines = "/pipelines/";
  constexpr std::string_view kWords[] = {"pause", "resume", "explain", "try-replay", "replay"};
  if (path == "/log/level") {
    const std::string_view word = body.substr(0, body.find_last_not_of(" \r\n") + 1);
    const auto level = metrics::SeverityFromName(word);
    if (!level) return {400, "the body must be one of debug, info, warn, error"};
    log_.SetLevel(*level);
    log_.Write(Severity::kWarn, "", "log_level",
               fmt::format("the log level is {} now, set over HTTP", word));
    return {200, fmt::format("the log level is {}", word)};
  }
  const std::size_t slash = path.rfind('/');
  const std::string_view word = path.substr(slash + 1);
  if (!path.starts_with(kPipelines) || slash < kPipelines.size() ||
      std::ranges::count(kWords, word) == 0) {
    return {404,
            "POST /log/level, or one of these of /pipelines/NAME: pause, resume, explain, "
            "try-replay, replay"};
  }
  const std::string_view name = path.substr(kPipelines.size(), slash - kPipelines.size());
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (pipelines_[i].name != name) continue;
    if (word != "pause" && word != "resume") return AboutRecord(i, word, body);
    workers_[i]->SetPaused(word == "pause");
    return {200, fmt::format("pipeline {}: {}d", name, word)};
  }
  return {404, fmt::format("this process has no pipeline {}", name)};
}

metrics::ControlAnswer Process::AboutRecord(std::size_t pipeline, std::string_view what,
                                            std::string_view record) const {
  const std::unique_lock one(about_record_, std::try_to_lock);
  if (!one.owns_lock()) return {503, "somebody asks for another record: ask again"};
  if (files_.files.empty() || files_.files[pipeline] == "-") {
    return {409, "the pipeline is of no file, which the command needs"};
  }
  record = record.substr(0, record.find_last_not_of(" \r\n") + 1);
  auto words = WordsAbout(record, what, {{files_.files[pipeline]}, files_.beside});
  if (words.empty()) return {400, "name the record: TOPIC/PARTITION/OFFSET, or id=ID"};
  const CommandEnd end = RunOwnCommand(std::move(words), kCommandLimit, stopping_);
  return {end.how == kWell           ? 200
          : end.how == kAskedWrongly ? 400
                                     : 409,
          end.text.substr(0, end.text.find_last_not_of('\n') + 1)};
}

// A second signal: at once. What does not end by itself ends with the process.
void Process::AwaitEnd(const RunSignals& signals, bool signalled) {
  const Clock::time_point asked = Clock::now();
  Clock::time_point limit = asked + LongestShutdown(pipelines_) + kLastResort;
  while (!ended_) {
    const auto left = std::chrono::ceil<Millis>(limit - Clock::now());
    if (left.count() <= 0) GiveUp(Clock::now() - asked);
    log_.WriteHeldBack();
    const auto woken = signals.Wait(static_cast<int>(std::min(left, kTick).count()));
    if (woken != RunSignals::Woken::kStop || ended_) continue;
    if (!std::exchange(signalled, true)) continue;  // the first, after a failure
    for (const auto& worker : workers_) worker->RequestStop();
    limit = std::min(limit, Clock::now() + kLastResortHurried);
  }
}

// Some thread never returns (a jq program that loops for ever): nothing can be joined, and no
// destructor may run. The locks end by their TTL, the effects are safe, the offsets stay.
void Process::GiveUp(Clock::duration waited) {
  std::string hangs;
  for (const auto& worker : workers_) {
    const std::string part = worker->Ending();
    if (part.empty()) continue;
    hangs += fmt::format("{}pipeline '{}' waits for {}", hangs.empty() ? "" : ", ",
                         worker->Status().pipeline, part);
  }
  PrintError(fmt::format(
      "the pipelines did not stop within {} s: {}; the process ends without them, and what was "
      "in flight is done again",
      std::chrono::duration_cast<std::chrono::seconds>(waited).count(), hangs));
  std::fflush(stderr);
  if (on_give_up_) on_give_up_();
  _exit(kFailed);
}

metrics::ProbeResult Process::Liveness() const {
  for (const auto& worker : workers_) {
    const auto [live, why] = worker->Live();
    if (!live) return {false, worker->Status().pipeline + ": " + why};
  }
  return {true, ""};
}

// Every reason of every pipeline; what a ready one has (a stall) is told, too.
metrics::ProbeResult Process::AllReady() const {
  metrics::ProbeResult all{true, ""};
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const auto [ready, reasons] = workers_[i]->Ready();
    all.ready = all.ready && ready;
    for (const consumer::Reason& reason : reasons) {
      all.reason += fmt::format("{}{}: {}", all.reason.empty() ? "" : "; ",
                                watched_[i].metrics->info().name, Sentence(reason));
    }
  }
  return all;
}

// The others listen at the port of this address, unless they say otherwise.
std::unique_ptr<consumer::FleetWatch> Process::MakeFleet(const std::string& address) const {
  consumer::ObserveOptions port = pipelines_.front().observe;
  port.http = address;
  const auto look = std::make_shared<consumer::FleetLook>(
      pipelines_, std::move(port), consumer::FleetLook::Limits{},
      consumer::FleetLook::Own{.worker = worker_,
                               .status = [this] { return StatusJson(Shown()); }});
  return std::make_unique<consumer::FleetWatch>([look] { return look->Look(); });
}

metrics::ShownFleet Process::ShownFleet() const {
  return {.worker = worker_,
          .version = Version(),
          .now = locking::ReadClocks().wall.time_since_epoch(),
          .fleets = fleet_->Latest()};
}

void Process::TakeSamples() const {
  for (const Watched& watched : watched_) {
    const metrics::Counts counts = watched.metrics->CurrentCounts();
    const auto now = locking::BootClock::now();
    watched.last_minute->finished.Take(counts["done"] + counts["no_output"] + counts["filtered"] +
                                           counts["skipped"] + counts["dead_lettered"],
                                       now);
    watched.last_minute->dead_letters.Take(counts["dead_lettered"], now);
    watched.last_minute->conflicts.Take(counts["id_conflicts"], now);
  }
}

metrics::ShownProcess Process::Shown() const {
  TakeSamples();
  const std::lock_guard lock(mutex_);
  metrics::ShownProcess process{.worker = worker_,
                                .version = Version(),
                                .libraries = consumer::LibraryVersions(),
                                .pipelines = {},
                                .now = locking::ReadClocks().wall.time_since_epoch()};
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Watched& watched = watched_[i];
    consumer::WorkerStatus status = workers_[i]->Status();
    status.last_errors = log_.LastErrors(status.pipeline);
    process.pipelines.push_back({.status = std::move(status),
                                 .counts = watched.metrics->CurrentCounts(),
                                 .rate = watched.last_minute->finished.Rate(),
                                 .per_second = watched.last_minute->finished.PerSecond(),
                                 .new_dead_letters = watched.last_minute->dead_letters.Gained(),
                                 .new_conflicts = watched.last_minute->conflicts.Gained(),
                                 .lock_ttl = watched.metrics->info().lock_ttl,
                                 .settings = watched.settings});
  }
  return process;
}

}  // namespace fencepost::cli
