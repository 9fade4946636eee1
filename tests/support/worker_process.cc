#include "tests/support/worker_process.h"
#include "tests/support/paths.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fencepost::testing {
namespace {

constexpr Deadline kStartLimit = std::chrono::seconds(20);
constexpr std::string_view kListening = "listening on http";

// The port in the event that says that `run` is bound; 0 while it has not.
int PortIn(const std::string& output) {
  const std::size_t at = output.find(kListening);
  if (at == std::string::npos) return 0;
  const std::size_t end = output.find_first_of("\"\n", at);
  if (end == std::string::npos) return 0;
  const std::size_t colon = output.rfind(':', end);
  return std::stoi(output.substr(colon + 1, end - colon - 1));
}

// The state letter of /proc/PID/stat: T is stopped.
bool Paused(pid_t pid) {
  const std::string stat = ReadFile(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = stat.rfind(')');
  return end != std::string::npos && end + 2 < stat.size() && stat[end + 2] == 'T';
}

std::string LastLines(const std::string& text, int lines) {
  std::size_t at = text.size();
  while (lines-- >= 0 && at != std::string::npos && at > 0) at = text.rfind('\n', at - 1);
  return at == std::string::npos ? text : text.substr(at + 1);
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerOptions& options) : name_(options.name) {
  ProcessOptions process;
  process.argv = {FencepostBinary(), "run"};
  process.argv.insert(process.argv.end(), options.files.begin(), options.files.end());
  for (const auto& [flag, value] :
       {std::pair<std::string, std::string>{"--http", options.http}, {"--worker", options.name}}) {
    if (value.empty()) continue;
    process.argv.push_back(flag);
    process.argv.push_back(value);
  }
  process.env = options.env;
  process.separate_stderr = true;
  process_ = std::make_unique<Process>(std::move(process));
  const auto up = WaitUntil(kStartLimit, [this] {
    port_ = PortIn(process_->ErrorOutput());
    return port_ != 0 || !process_->Running();
  });
  if (up && port_ != 0) return;
  throw std::runtime_error(
      fmt::format("fencepost run did not listen; it said:\n{}", process_->ErrorOutput()));
}

HttpResponse WorkerProcess::Get(const std::string& path) const {
  return HttpGet("127.0.0.1", port_, path);
}

bool WorkerProcess::Look() {
  if (!process_->Running() || Paused(process_->pid())) return false;
  auto page = Scrape(port_);
  if (!page) return false;
  last_ = std::move(*page);
  return true;
}

double WorkerProcess::Last(std::string_view metric, const MetricsPage::Labels& labels) const {
  return last_.Value(metric, labels).value_or(0);
}

double WorkerProcess::Now(std::string_view metric, const MetricsPage::Labels& labels) {
  Look();
  return Last(metric, labels);
}

std::optional<int> WorkerProcess::Stop(Deadline limit) {
  Terminate();
  return Wait(limit);
}

std::vector<std::string> WorkerProcess::ErrorLines() const {
  std::vector<std::string> lines;
  std::istringstream text(process_->ErrorOutput());
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line[0] != '{') lines.push_back(line);
  }
  return lines;
}

void ExpectSays(const WorkerProcess& worker, const std::string& part, Deadline limit) {
  EXPECT_TRUE(WaitUntil(limit, "/ready to say '" + part + "'",
                        [&] { return worker.Readiness().find(part) != std::string::npos; }))
      << worker.Readiness() << worker.Log();
}

void ExpectReady(const WorkerProcess& worker, Deadline limit) {
  EXPECT_TRUE(WaitUntil(limit, "the worker to be ready", [&] { return worker.Ready(); }))
      << worker.Readiness() << worker.Log();
}

WorkerProcess& WorkerTeam::Add(std::string name) {
  WorkerOptions options = options_;
  options.name = name.empty() ? fmt::format("worker-{}", workers_.size() + 1) : std::move(name);
  options.env["LIFE"] = std::to_string(workers_.size());
  workers_.push_back(std::make_unique<WorkerProcess>(options));
  return *workers_.back();
}

WorkerTeam& WorkerTeam::Start(int count) {
  for (int i = 0; i < count; ++i) Add();
  return *this;
}

std::vector<WorkerProcess*> WorkerTeam::Running() {
  std::vector<WorkerProcess*> running;
  for (const auto& worker : workers_) {
    if (worker->Running()) running.push_back(worker.get());
  }
  return running;
}

void WorkerTeam::Look() {
  for (const auto& worker : workers_) worker->Look();
}

double WorkerTeam::Sum(std::string_view metric, const MetricsPage::Labels& labels) const {
  double sum = 0;
  for (const auto& worker : workers_) sum += worker->Last(metric, labels);
  return sum;
}

bool WorkerTeam::AllReady() {
  const auto running = Running();
  return std::all_of(running.begin(), running.end(), [](auto* worker) { return worker->Ready(); });
}

std::string WorkerTeam::StopAll(Deadline limit) {
  const auto running = Running();
  for (WorkerProcess* worker : running) worker->Terminate();
  std::string trouble;
  for (WorkerProcess* worker : running) {
    const auto code = worker->Wait(limit);
    if (code == 0) continue;
    trouble += code ? fmt::format("{} ended with {}: {}\n", worker->name(), *code,
                                  LastLines(worker->Log(), 3))
                    : fmt::format("{} did not end on SIGTERM within {} ms\n", worker->name(),
                                  limit.count());
  }
  return trouble;
}

std::string WorkerProcess::Unfinished() const {
  if (!process_->Running() || Paused(process_->pid())) return "";
  const auto page = Get("/status");
  const auto status = nlohmann::json::parse(page.body, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return fmt::format("/status: {} {}\n", page.status, page.body);
  std::string text;
  for (const auto& pipeline : status["pipelines"]) {
    if (pipeline["lag"] == 0 && pipeline["in_flight"]["records"] == 0) continue;
    text += fmt::format("{}: {}, in flight {}, {}\n", pipeline["pipeline"].dump(),
                        pipeline["reasons"].dump(), pipeline["in_flight"].dump(),
                        pipeline["partitions"].dump());
  }
  return text;
}

std::string WorkerTeam::Tails() const {
  std::string text;
  for (const auto& worker : workers_) {
    text += fmt::format("--- {} ({}), what is unfinished, and its last lines:\n{}{}",
                        worker->name(), worker->Running() ? "runs" : "ended", worker->Unfinished(),
                        LastLines(worker->Log(), 12));
  }
  return text;
}

Finished RunFencepost(std::vector<std::string> words, std::map<std::string, std::string> env,
                      Deadline limit) {
  ProcessOptions options;
  options.argv = {FencepostBinary()};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  options.env = std::move(env);
  options.separate_stderr = true;
  return RunToEnd(std::move(options), limit);
}

}  // namespace fencepost::testing
