#include "consumer/cli/supervise/supervisor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/cli/supervise/child.h"

namespace fencepost::cli {
namespace {

using locking::Severity;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kScrapeLimit{4};
constexpr seconds kAskLimit{2};
constexpr milliseconds kStopLookLimit{300};
// A process that has never answered is taken for one that starts.
constexpr seconds kStartLimit{60};
// A process that hangs ends itself ten seconds after its shutdown_timeout, five after a second
// signal; one that does not even do that is killed.
constexpr seconds kBeyondShutdown{15};

Supervision::Options OptionsFor(const std::vector<consumer::PipelineOptions>& pipelines,
                                int processes) {
  milliseconds longest{0};
  for (const auto& pipeline : pipelines) longest = std::max(longest, pipeline.shutdown_timeout);
  Supervision::Options options;
  options.processes = processes;
  options.stop_limit = longest + kBeyondShutdown;
  return options;
}

double InSeconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string TextOf(ProcessEnd end) {
  if (!end.by_signal) return fmt::format("ended with exit code {}", end.value);
  return fmt::format("was ended by signal {} ({})", end.value, strsignal(end.value));
}

std::string_view WordOf(std::string_view body) {
  return body.substr(0, body.find_last_not_of(" \r\n") + 1);
}

// What a POST sets, so that the last word on it counts.
std::string SubjectOf(std::string_view path) {
  return std::string(path.starts_with("/pipelines/") ? path.substr(0, path.rfind('/')) : path);
}

}  // namespace

std::string NameOfProcess(const std::string& name, int process) {
  return fmt::format("{}-{}", name, process);
}

void LogWarnings(metrics::Log& log, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    log.Write(Severity::kWarn, "", "file_warning", warning);
}

Supervisor::Supervisor(const std::vector<consumer::PipelineOptions>& pipelines,
                       std::vector<std::string> files, std::string worker, int processes)
    : files_(std::move(files)),
      worker_(std::move(worker)),
      processes_(processes),
      observe_(pipelines.front().observe),
      log_(metrics::LogOptionsOf(observe_, worker_)),
      page_({Version(), Commit()}),
      supervision_(OptionsFor(pipelines, processes)),
      running_(static_cast<std::size_t>(processes)) {
  for (const auto& pipeline : pipelines) names_.push_back(pipeline.name);
}

Supervisor::~Supervisor() = default;

tl::expected<void, Error> Supervisor::StartHttp(const std::string& address) {
  metrics::Endpoints endpoints{.metrics = [this] { return Metrics(); },
                               .live = [this] { return Live(); },
                               .ready = [this] { return Ready(); },
                               .status = [this] { return MergeStatus(State()); },
                               .page = [this] { return Page(); },
                               .event = [this] { return metrics::StatusEventOf(Fragment()); }};
  endpoints.control = {
      .access = observe_.control,
      .token = observe_.control_token,
      .post = [this](std::string_view path, std::string_view body) { return Post(path, body); }};
  auto server = metrics::HttpServer::Start(address, std::move(endpoints));
  if (!server) return tl::unexpected(server.error());
  server_ = std::move(*server);
  log_.Write(Severity::kInfo, "", "http_listening", "listening on http://" + server_->bound());
  return {};
}

int Supervisor::Run(const RunSignals& signals) {
  for (;;) {
    Supervision::Actions due;
    std::optional<int> code;
    int wait = -1;
    {
      const std::lock_guard lock(mutex_);
      due = supervision_.OnTime(Clock::now());
      code = supervision_.exit_code();
      if (const auto next = supervision_.next(); next) {
        const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now()).count();
        wait = static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
      }
    }
    if (code) return *code;
    Do(due);
    switch (signals.Wait(due.empty() ? wait : 0)) {
      case RunSignals::Woken::kStop:
      case RunSignals::Woken::kTerminalGone:
        Stop();
        break;
      case RunSignals::Woken::kReload:
        Reload();
        break;
      case RunSignals::Woken::kChild:
        Reap();
        break;
      case RunSignals::Woken::kByWake:
      case RunSignals::Woken::kNot:
        break;
    }
  }
}

void Supervisor::Do(const Supervision::Actions& actions) {
  for (const auto& [act, process] : actions) {
    switch (act) {
      case Supervision::Act::kStart:
        Start(process);
        break;
      case Supervision::Act::kStop:
        Signal(process, SIGTERM);
        break;
      case Supervision::Act::kKill:
        log_.Write(Severity::kError, "", "process_killed",
                   fmt::format("process {} has not come to its end in time and is killed; what was "
                               "in flight is done again",
                               process));
        Signal(process, SIGKILL);
        break;
    }
  }
}

void Supervisor::Start(int process) {
  const std::string name = NameOfProcess(worker_, process);
  std::vector<std::string> arguments{"run", "--worker", name, kProcessOption,
                                     std::to_string(process)};
  arguments.insert(arguments.end(), files_.begin(), files_.end());
  auto child = StartChild(arguments, kChannelOption);
  const std::lock_guard lock(mutex_);
  if (!child) {
    log_.Write(Severity::kError, "", "process_not_started",
               fmt::format("process {} cannot be started: {}", process, child.error()));
    (void)supervision_.OnEnded(process, {.by_signal = true}, Clock::now());
    return;
  }
  supervision_.OnStarted(process, Clock::now());
  Running& running = running_.at(static_cast<std::size_t>(process));
  running = {child->pid, std::make_shared<AskingEnd>(std::move(child->asking)), Clock::now()};
  log_.Write(Severity::kInfo, "", "process_started",
             fmt::format("process {} is started as worker {}, pid {}", process, name, child->pid));
  // It reads them as soon as it can, and before its workers start.
  for (const auto& [subject, question] : standing_) {
    (void)running.asking->Begin(question, Clock::now());
  }
}

void Supervisor::Signal(int process, int signal) const {
  const std::lock_guard lock(mutex_);
  const pid_t pid = running_.at(static_cast<std::size_t>(process)).pid;
  if (pid > 0) kill(pid, signal);  // it is not reaped: the number is still its own
}

// As the first process of a container it may have others' orphans too.
void Supervisor::Reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    Supervision::Actions actions;
    ProcessEnd end;
    int process = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::ranges::find(running_, pid, &Running::pid);
      if (at == running_.end()) continue;
      process = static_cast<int>(at - running_.begin());
      *at = {};
      end = WIFSIGNALED(status) ? ProcessEnd{true, WTERMSIG(status)}
                                : ProcessEnd{false, WEXITSTATUS(status)};
      actions = supervision_.OnEnded(process, end, Clock::now());
    }
    TellEnd(process, pid, end);
    Do(actions);
  }
}

void Supervisor::TellEnd(int process, pid_t pid, ProcessEnd end) {
  std::string text = fmt::format("process {} (pid {}) {}", process, pid, TextOf(end));
  std::optional<Clock::time_point> again;
  {
    const std::lock_guard lock(mutex_);
    again = supervision_.starts_at(process);
  }
  const bool well = !end.by_signal && end.value == 0;
  if (again) {
    text += fmt::format("; it starts again in {:.1f} s", InSeconds(*again - Clock::now()));
  } else if (!well) {
    text += "; all end";
  }
  log_.Write(well ? Severity::kInfo : Severity::kError, "", "process_ended", text);
}

// The first time all are told before anything else is done; they drain side by side.
void Supervisor::Stop() {
  Supervision::Actions actions;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = !supervision_.stopping();
    actions = supervision_.OnStop(Clock::now());
  }
  Do(actions);
  if (!first) return;
  SupervisorState state;
  for (Said& said : AskAll({"/status"}, kStopLookLimit)) {
    auto status = said.answer ? std::optional(said.answer->text) : std::nullopt;
    state.processes.push_back({.status = std::move(status)});
  }
  log_.Write(Severity::kInfo, "", "processes_stopping",
             fmt::format("{} processes drain; records in flight: {}; a second signal stops at once",
                         actions.size(), InFlightText(state)));
}

// A file that is wrong is told once, and changes nothing in any process.
void Supervisor::Reload() {
  std::vector<std::string> warnings;
  const auto fresh = LoadPipelines(files_, &warnings);
  if (!fresh) {
    log_.Write(Severity::kError, "", "reload_failed",
               "the files have errors (see stderr): the processes go on as they were");
    return;
  }
  LogWarnings(log_, warnings);
  log_.SetLevel(metrics::LogOptionsOf(fresh->front().observe, worker_).level);
  for (int i = 0; i < processes_; ++i) Signal(i, SIGHUP);
}

// All at the same time.
std::vector<Supervisor::Said> Supervisor::AskAll(const Question& question, Millis limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  std::vector<std::shared_ptr<AskingEnd>> ends;
  {
    const std::lock_guard lock(mutex_);
    for (const Running& running : running_) ends.push_back(running.asking);
  }
  std::vector<std::optional<AskingEnd::Asked>> asked;
  for (const auto& end : ends) {
    asked.push_back(end == nullptr ? std::nullopt : end->Begin(question, deadline));
  }
  std::vector<Said> all;
  for (auto& one : asked) {
    all.push_back({.answer = one ? one->Await(deadline) : std::nullopt});
    one.reset();  // others may ask
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].answer) {
      all[i] = WithoutAnswer(static_cast<int>(i));
    } else if (running_[i].asking == ends[i]) {
      running_[i].answered = true;
    }
  }
  return all;
}

Supervisor::Said Supervisor::WithoutAnswer(int process) const {
  const Running& running = running_.at(static_cast<std::size_t>(process));
  if (const auto again = supervision_.starts_at(process); again) {
    const double left = std::max(0.0, InSeconds(*again - Clock::now()));
    return {.trouble = fmt::format("ended, starts again in {:.1f} s", left)};
  }
  if (running.pid < 0) return {.trouble = "ended"};
  if (!running.answered && Clock::now() - running.since < kStartLimit) {
    return {.trouble = "starting"};
  }
  return {.trouble = fmt::format("pid {} does not answer", running.pid), .live = false};
}

std::vector<std::uint64_t> Supervisor::Restarts() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> restarts;
  for (int i = 0; i < processes_; ++i) restarts.push_back(supervision_.restarts(i));
  return restarts;
}

SupervisorState Supervisor::State() {
  SupervisorState state{.worker = worker_,
                        .version = Version(),
                        .uptime_seconds = InSeconds(Clock::now() - started_)};
  std::vector<Said> all = AskAll({"/status"}, kAskLimit);
  const std::vector<std::uint64_t> restarts = Restarts();
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < all.size(); ++i) {
    ProcessState process{.worker = NameOfProcess(worker_, static_cast<int>(i)),
                         .pid = std::max(0, running_[i].pid),
                         .restarts = restarts[i],
                         .trouble = std::move(all[i].trouble)};
    if (all[i].answer) process.status = std::move(all[i].answer->text);
    state.processes.push_back(std::move(process));
  }
  return state;
}

std::string Supervisor::Metrics() {
  std::vector<Said> all = AskAll({"/metrics"}, kScrapeLimit);
  std::vector<PageOfProcess> pages;
  std::vector<std::uint64_t> up;
  for (std::size_t i = 0; i < all.size(); ++i) {
    up.push_back(all[i].answer ? 1 : 0);
    if (all[i].answer) pages.push_back({std::to_string(i), std::move(all[i].answer->text)});
  }
  pages.push_back({"supervisor", page_.Render()});
  pages.push_back({"", PageOf(metrics::Info(metrics::Metric::kEachUp), names_, up)});
  pages.push_back({"", PageOf(metrics::Info(metrics::Metric::kEachRestarts), names_, Restarts())});
  return MergePages(pages);
}

// One that is to be started again is this process's business, which does it.
metrics::ProbeResult Supervisor::Live() {
  const std::vector<Said> all = AskAll({"/live"}, kAskLimit);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool live = all[i].answer ? all[i].answer->status == 200 : all[i].live;
    if (live) continue;
    return {false,
            fmt::format("process {}: {}", i, all[i].answer ? all[i].answer->text : all[i].trouble)};
  }
  return {true, ""};
}

// Every reason of every process; what a ready one has (a stall) is told, too.
metrics::ProbeResult Supervisor::Ready() {
  metrics::ProbeResult ready{true, ""};
  const std::vector<Said> all = AskAll({"/ready"}, kAskLimit);
  for (std::size_t i = 0; i < all.size(); ++i) {
    ready.ready = ready.ready && all[i].answer && all[i].answer->status == 200;
    const std::string& reason = all[i].answer ? all[i].answer->text : all[i].trouble;
    if (reason.empty()) continue;
    ready.reason += fmt::format("{}process {}: {}", ready.reason.empty() ? "" : "; ", i, reason);
  }
  return ready;
}

std::string Supervisor::Fragment() {
  std::vector<Said> all = AskAll({"/fragment"}, kAskLimit);
  std::vector<metrics::ProcessFragment> fragments;
  for (std::size_t i = 0; i < all.size(); ++i) {
    metrics::ProcessFragment one{.name = std::to_string(i), .trouble = std::move(all[i].trouble)};
    if (all[i].answer) {
      one.ready = all[i].answer->status == 200;
      one.fragment = std::move(all[i].answer->text);
    }
    fragments.push_back(std::move(one));
  }
  return metrics::FragmentOfProcesses(fragments);
}

std::string Supervisor::Page() {
  return metrics::StatusPageAround({.worker = worker_,
                                    .version = Version(),
                                    .pipelines = {},
                                    .now = std::chrono::duration_cast<milliseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())},
                                   Fragment());
}

// To all. What they take up holds for those, too, that are started later.
metrics::ControlAnswer Supervisor::Post(std::string_view path, std::string_view body) {
  const Question question{std::string(path), std::string(body)};
  const std::vector<Said> all = AskAll(question, kAskLimit);
  metrics::ControlAnswer answer{503, "no process answers"};
  for (const Said& said : all) {
    if (!said.answer) continue;
    answer = {said.answer->status, said.answer->text};
    if (answer.status != 200) return answer;  // what one refuses, all do
  }
  if (answer.status != 200) return answer;
  // One that starts takes it twice, or was started since and takes it for the first time.
  std::vector<std::shared_ptr<AskingEnd>> starting(all.size());
  {
    const std::lock_guard lock(mutex_);
    standing_[SubjectOf(path)] = question;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].answer && all[i].live) starting[i] = running_[i].asking;
    }
  }
  std::vector<std::string> silent;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool told =
        all[i].answer || (all[i].live && (starting[i] == nullptr ||
                                          starting[i]->Begin(question, Clock::now() + kAskLimit)));
    if (!told) silent.push_back(fmt::format("process {}: {}", i, all[i].trouble));
  }
  if (path == "/log/level") log_.SetLevel(*metrics::SeverityFromName(WordOf(body)));
  if (silent.empty()) return answer;
  return {503, fmt::format("{}, but: {}", answer.text, fmt::join(silent, ", "))};
}

}  // namespace fencepost::cli
