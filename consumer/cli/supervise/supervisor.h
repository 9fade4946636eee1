// `run --processes N`: starts N processes that each run the pipelines, starts one again that
// crashed, and is what the outside sees of them: one HTTP server, one process to signal, one exit
// code. What it decides is in supervision.h.
//
// Threads: Run on the main one; the HTTP server's, which ask the processes over their channels.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/supervise/channel.h"
#include "consumer/cli/supervise/merge.h"
#include "consumer/cli/supervise/run_signals.h"
#include "consumer/cli/supervise/supervision.h"
#include "consumer/pipeline/options.h"
#include "metrics/http/http_server.h"
#include "metrics/log/log.h"
#include "metrics/page.h"
#include "metrics/status/status_page.h"

namespace fencepost::cli {

constexpr int kMostProcesses = 64;

// What a process is told besides its files: hidden options of `run`.
constexpr const char* kProcessOption = "--process";
constexpr const char* kChannelOption = "--channel";

// The worker's name of a process: of one NAME, NAME-0, NAME-1, …; the same after a restart.
std::string NameOfProcess(const std::string& name, int process);

// What lint warns of in the files, as events.
void LogWarnings(metrics::Log& log, const std::vector<std::string>& warnings);

class Supervisor {
 public:
  // `pipelines`, checked, are what `files` hold. `worker`: the name that those of the processes are
  // made of.
  Supervisor(const std::vector<consumer::PipelineOptions>& pipelines,
             std::vector<std::string> files, std::string worker, int processes);
  ~Supervisor();

  // As that of a process.
  tl::expected<void, Error> StartHttp(const std::string& address);
  // Until all have ended; the exit code. `signals` with `children`.
  int Run(const RunSignals& signals);
  metrics::Log& log() { return log_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Millis = std::chrono::milliseconds;
  struct Running {
    pid_t pid = -1;  // -1: it does not run
    std::shared_ptr<AskingEnd> asking;
    Clock::time_point since{};
    bool answered = false;  // ever
  };
  // What a process said, or why nothing.
  struct Said {
    std::optional<Answer> answer;
    std::string trouble;
    bool live = true;  // without an answer: it is on its way to one
  };

  // On the main thread.
  void Do(const Supervision::Actions& actions);
  void Start(int process);
  void Signal(int process, int signal) const;
  void Reap();
  void TellEnd(int process, pid_t pid, ProcessEnd end);
  void Stop();
  void Reload();

  // Any thread.
  std::vector<Said> AskAll(const Question& question, Millis limit);
  Said WithoutAnswer(int process) const;  // with mutex_
  SupervisorState State();
  std::vector<std::uint64_t> Restarts() const;
  std::string Metrics();
  metrics::ProbeResult Live();
  metrics::ProbeResult Ready();
  std::string Fragment();
  std::string Page();
  metrics::ControlAnswer Post(std::string_view path, std::string_view body);

  const std::vector<std::string> files_;
  const std::string worker_;
  const int processes_;
  const consumer::ObserveOptions observe_;
  const Clock::time_point started_ = Clock::now();
  std::vector<std::string> names_;  // of the pipelines
  metrics::Log log_;
  metrics::MetricsPage page_;  // of this process

  mutable std::mutex mutex_;  // guards what follows
  Supervision supervision_;
  std::vector<Running> running_;
  std::map<std::string, Question> standing_;  // what was set over HTTP, by what it sets

  std::unique_ptr<metrics::HttpServer> server_;  // last: it asks all the others
};

}  // namespace fencepost::cli
