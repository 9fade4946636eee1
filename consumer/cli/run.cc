// fencepost run FILE...: the workers of these pipelines, until SIGTERM or SIGINT.
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/kafka/client/shared_consumer.h"
#include "consumer/record/text.h"
#include "consumer/worker/make_handler.h"
#include "consumer/worker/worker.h"
#include "locking/base/wake_up.h"
#include "metrics/http/http_server.h"
#include "metrics/log/log.h"
#include "metrics/page.h"
#include "metrics/status/history.h"
#include "metrics/status/status_json.h"
#include "metrics/status/status_page.h"

namespace fencepost::cli {
namespace {

using Clock = std::chrono::steady_clock;
using consumer::Millis;
using consumer::PipelineOptions;
using consumer::Worker;
using locking::Severity;

struct RunArguments {
  std::vector<std::string> files;
  std::string http;
  std::string worker;
};

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

constexpr std::size_t kMaxWorkerName = 255;

// The name goes into every ledger row, header and log line: one that a database refuses would make
// every record bad.
tl::expected<std::string, std::string> GoodName(std::string name, std::string_view given_by) {
  const bool control =
      std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  const char* const why = !consumer::IsUtf8(name)        ? "is not valid UTF-8"
                          : control                      ? "holds control characters"
                          : name.size() > kMaxWorkerName ? "is longer than 255 bytes"
                                                         : nullptr;
  if (why == nullptr) return name;
  return tl::unexpected(
      fmt::format("the worker's name, given by {}, {}: give another", given_by, why));
}

// A host's name may be anything; what is no printable ASCII becomes '-'.
std::string OwnName() {
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  for (char& c : host) {
    if (c != '\0' && (c <= ' ' || c > '~')) c = '-';
  }
  return fmt::format("{:.200}-{}-{:08x}", host, getpid(), std::random_device{}());
}

tl::expected<std::string, std::string> WorkerName(const RunArguments& arguments) {
  if (!arguments.worker.empty()) return GoodName(arguments.worker, "--worker");
  if (std::string name = FromEnvironment("FENCEPOST_WORKER"); !name.empty()) {
    return GoodName(std::move(name), "FENCEPOST_WORKER");
  }
  return OwnName();
}

// Static members are known by their names: the same ones after a restart, as Kafka allows them.
tl::expected<void, std::string> NameFitsStaticMembers(
    const RunArguments& arguments, const std::string& name,
    const std::vector<PipelineOptions>& pipelines) {
  if (std::ranges::none_of(pipelines, [](const PipelineOptions& pipeline) {
        return pipeline.kafka.static_members;
      })) {
    return {};
  }
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  constexpr std::size_t kMaxInstanceId = 249;
  if (arguments.worker.empty() && FromEnvironment("FENCEPOST_WORKER").empty()) {
    return tl::unexpected(
        std::string("kafka.static_members needs a name that this worker has after a restart too: "
                    "give it with --worker or FENCEPOST_WORKER"));
  }
  if (name.size() <= kMaxInstanceId && name.find_first_not_of(kAllowed) == std::string::npos) {
    return {};
  }
  return tl::unexpected(fmt::format(
      "kafka.static_members: the worker's name '{}' may have letters, digits, '.', '_' and '-', "
      "and at most {} of them: give another",
      name, kMaxInstanceId));
}

// SIGTERM and SIGINT as something to poll, and a way for workers to wake the main thread.
class StopSignals {
 public:
  // Before any thread starts, so that every thread has them blocked.
  StopSignals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    signals_ = Fd(signalfd(-1, &set, SFD_CLOEXEC));
  }

  void Wake() const { wake_up_.Wake(); }
  enum class Woken : std::uint8_t { kNot, kBySignal, kByWake };
  // Blocks until a signal or Wake, at most so long (-1: for ever). A signal counts before a Wake.
  [[nodiscard]] Woken Wait(int milliseconds) const {
    pollfd fds[] = {{signals_.get(), POLLIN, 0}, {wake_up_.fd(), POLLIN, 0}};
    int ready = 0;
    while ((ready = poll(fds, 2, milliseconds)) < 0 && errno == EINTR) {
    }
    if (ready <= 0) return Woken::kNot;
    wake_up_.Taken();
    if ((fds[0].revents & POLLIN) == 0) return Woken::kByWake;
    signalfd_siginfo info{};
    [[maybe_unused]] const ssize_t n = read(signals_.get(), &info, sizeof info);
    return Woken::kBySignal;
  }

 private:
  Fd signals_;
  const WakeUp wake_up_;
};

// --http, else FENCEPOST_HTTP, else the files' own; one server a process.
tl::expected<std::string, std::string> HttpAddress(const RunArguments& arguments,
                                                   const std::vector<PipelineOptions>& pipelines) {
  if (!arguments.http.empty()) return arguments.http;
  if (std::string address = FromEnvironment("FENCEPOST_HTTP"); !address.empty()) return address;
  std::set<std::string> addresses;
  for (const PipelineOptions& pipeline : pipelines) {
    if (!pipeline.observe.http.empty()) addresses.insert(pipeline.observe.http);
  }
  if (addresses.size() > 1) {
    return tl::unexpected("the files name several observe.http addresses (" + *addresses.begin() +
                          ", " + *addresses.rbegin() + "); a process has one: give it with --http");
  }
  return addresses.empty() ? std::string() : *addresses.begin();
}

metrics::LogOptions LogOptionsOf(const PipelineOptions& pipeline, const std::string& worker) {
  metrics::LogOptions options;
  options.worker = worker;
  options.level = metrics::SeverityFromName(pipeline.observe.log_level).value_or(Severity::kInfo);
  options.format =
      pipeline.observe.log_format == "text" ? metrics::LogFormat::kText : metrics::LogFormat::kJson;
  return options;
}

// A process that hangs is ended this long after the longest shutdown_timeout, or after a second
// signal.
constexpr std::chrono::seconds kLastResort{10};
constexpr std::chrono::seconds kLastResortHurried{5};

class Process {
 public:
  Process(const std::vector<PipelineOptions>& pipelines, const std::string& worker)
      : worker_(worker),
        log_(LogOptionsOf(pipelines.front(), worker)),
        page_({Version(), Commit()}) {
    for (const PipelineOptions& options : pipelines) {
      const auto added = page_.Add({.name = options.name,
                                    .nodes = static_cast<int>(options.lock.redis.nodes.size()),
                                    .lock_ttl = options.lock.lock.ttl,
                                    .config_hash = options.config_hash},
                                   &log_);
      workers_.push_back(std::make_unique<Worker>(options, worker, *added, *added));
      watched_.push_back({.metrics = *added, .settings = options.shown});
      longest_shutdown_ = std::max(longest_shutdown_, options.shutdown_timeout);
    }
  }

  tl::expected<void, Error> StartHttp(const std::string& address) {
    auto server =
        metrics::HttpServer::Start(address, {.metrics = [this] { return page_.Render(); },
                                             .live = [this] { return Liveness(); },
                                             .ready = [this] { return AllReady(); },
                                             .status = [this] { return StatusJson(Shown()); },
                                             .page = [this] { return StatusPage(Shown()); },
                                             .event = [this] { return StatusEvent(Shown()); }});
    if (!server) return tl::unexpected(server.error());
    server_ = std::move(*server);
    std::fprintf(stderr, "listening on http://%s\n", server_->bound().c_str());
    log_.Write(Severity::kInfo, "", "http_listening", "http://" + server_->bound());
    return {};
  }

  int RunUntilStopped(const StopSignals& signals) {
    for (const auto& worker : workers_) {
      worker->OnFailure([&signals] { signals.Wake(); });
      if (const auto started = worker->Start(); !started) return ExitUsage(started.error());
    }
    const bool signalled = WaitForSignal(signals);
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

 private:
  // The rates on the status page want a look at the counters once a second.
  bool WaitForSignal(const StopSignals& signals) const {
    auto woken = StopSignals::Woken::kNot;
    while (woken == StopSignals::Woken::kNot) {
      TakeSamples();
      woken = signals.Wait(server_ == nullptr ? -1 : 1000);
    }
    return woken == StopSignals::Woken::kBySignal;
  }

  // A second signal: at once. What does not end by itself ends with the process.
  void AwaitEnd(const StopSignals& signals, bool signalled) {
    const Clock::time_point asked = Clock::now();
    Clock::time_point limit = asked + longest_shutdown_ + kLastResort;
    while (!ended_) {
      const auto left = std::chrono::ceil<Millis>(limit - Clock::now());
      if (left.count() <= 0) GiveUp(Clock::now() - asked);
      const auto woken = signals.Wait(static_cast<int>(left.count()));
      if (woken != StopSignals::Woken::kBySignal || ended_) continue;
      if (!std::exchange(signalled, true)) continue;  // the first, after a failure
      for (const auto& worker : workers_) worker->RequestStop();
      limit = std::min(limit, Clock::now() + kLastResortHurried);
    }
  }

  // Some thread never returns (a jq program that loops for ever): nothing can be joined, and no
  // destructor may run. The locks end by their TTL, the effects are safe, the offsets stay.
  [[noreturn]] void GiveUp(Clock::duration waited) {
    std::string hangs;
    for (const auto& worker : workers_) {
      const std::string part = worker->Ending();
      if (part.empty()) continue;
      hangs += fmt::format("{}pipeline '{}' waits for {}", hangs.empty() ? "" : ", ",
                           worker->Status().pipeline, part);
    }
    PrintError(fmt::format(
        "the stop has not come to its end within {} s: {}; the process ends without it, what was "
        "in flight is done again",
        std::chrono::duration_cast<std::chrono::seconds>(waited).count(), hangs));
    std::fflush(stderr);
    _exit(kFailed);
  }

  metrics::ProbeResult Liveness() const {
    for (const auto& worker : workers_) {
      const auto [live, why] = worker->Live();
      if (!live) return {false, worker->Status().pipeline + ": " + why};
    }
    return {true, ""};
  }

  // Every reason of every pipeline; what a ready one has (a stall) is told, too.
  metrics::ProbeResult AllReady() const {
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

  // What the status page shows beside the workers' own word.
  struct Watched {
    metrics::PipelineMetrics* metrics;
    std::vector<std::pair<std::string, std::string>> settings;
    std::unique_ptr<metrics::History> finished = std::make_unique<metrics::History>();
  };

  void TakeSamples() const {
    for (const Watched& watched : watched_) {
      const metrics::Counts counts = watched.metrics->CurrentCounts();
      watched.finished->Take(counts.done + counts.skipped + counts.dead_lettered,
                             locking::BootClock::now());
    }
  }

  metrics::ShownProcess Shown() const {
    TakeSamples();
    metrics::ShownProcess process{.worker = worker_,
                                  .version = Version(),
                                  .pipelines = {},
                                  .now = std::chrono::duration_cast<Millis>(
                                      std::chrono::system_clock::now().time_since_epoch())};
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const Watched& watched = watched_[i];
      consumer::WorkerStatus status = workers_[i]->Status();
      status.last_errors = log_.LastErrors(status.pipeline);
      process.pipelines.push_back({.status = std::move(status),
                                   .counts = watched.metrics->CurrentCounts(),
                                   .rate = watched.finished->Rate(),
                                   .per_second = watched.finished->PerSecond(),
                                   .lock_ttl = watched.metrics->info().lock_ttl,
                                   .settings = watched.settings});
    }
    return process;
  }

  const std::string worker_;
  metrics::Log log_;
  metrics::MetricsPage page_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Watched> watched_;  // of each worker
  Millis longest_shutdown_{0};
  std::vector<Error> errors_;
  std::atomic<bool> ended_{false};
  std::unique_ptr<metrics::HttpServer> server_;  // last: it asks all the others
};

// All handlers before the first worker starts: a file that is wrong stops nobody else's records.
bool HandlersAreGood(const std::vector<PipelineOptions>& pipelines) {
  bool good = true;
  for (const PipelineOptions& pipeline : pipelines) {
    const auto checked = consumer::CheckHandler(pipeline.handler);
    if (checked) continue;
    PrintError(fmt::format("{}: {}", pipeline.name, checked.error().Line()));
    good = false;
  }
  return good;
}

int RunPipelines(const RunArguments& arguments, const StopSignals& signals) {
  const auto name = WorkerName(arguments);
  if (!name) return ExitUsage(name.error());
  const auto pipelines = LoadPipelines(arguments.files);
  if (!pipelines || !HandlersAreGood(*pipelines)) return kUsage;
  if (const auto fits = NameFitsStaticMembers(arguments, *name, *pipelines); !fits) {
    return ExitUsage(fits.error());
  }
  const auto address = HttpAddress(arguments, *pipelines);
  if (!address) return ExitUsage(address.error());
  Process process(*pipelines, *name);
  if (!address->empty()) {
    if (const auto started = process.StartHttp(*address); !started) {
      const bool wrong = started.error().code == "http_bad_address";
      return wrong ? ExitUsage(started.error()) : ExitFailed(started.error());
    }
  }
  return process.RunUntilStopped(signals);
}

// librdkafka's threads that never end would run on under the process's static objects.
int RunToItsEnd(const RunArguments& arguments) {
  const StopSignals signals;
  const int code = RunPipelines(arguments, signals);
  if (consumer::rdkafka::ConsumersLeftBehind() == 0) return code;
  PrintError("a Kafka client did not come to its end and is left to the end of the process");
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

void AddRun(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run pipelines until SIGTERM or SIGINT");
  command->add_option("FILE", arguments->files, "pipeline files")->required();
  command->add_option("--http", arguments->http, "HOST:PORT of /metrics, /live, /ready, /status");
  command->add_option("--worker", arguments->worker, "this worker's name");
  command->callback([&run, arguments] { run = [arguments] { return RunToItsEnd(*arguments); }; });
}

}  // namespace fencepost::cli
