// Real `fencepost run` processes, watched through their HTTP servers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/http.h"
#include "tests/support/process.h"

namespace fencepost::testing {

struct WorkerOptions {
  std::vector<std::string> files;
  std::string name{};  // --worker
  std::string http = "127.0.0.1:0";
  std::map<std::string, std::string> env{};
};

// One `fencepost run`. The constructor returns when its HTTP server answers, which is before it has
// joined the group; it throws with what the worker printed if that does not come.
class WorkerProcess {
 public:
  explicit WorkerProcess(const WorkerOptions& options);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  [[nodiscard]] HttpResponse Get(const std::string& path) const;
  // /ready says 200 and "ready".
  [[nodiscard]] bool Ready() const { return Get("/ready").status == 200; }
  // The body of /ready: "ready", or "not ready: " and why.
  [[nodiscard]] std::string Readiness() const { return Get("/ready").body; }
  // Pipelines with a lag or with records in flight, from /status: for the message of a test that
  // waited in vain. Empty while it is paused, or has ended.
  [[nodiscard]] std::string Unfinished() const;

  // Scrapes; false when there was no answer. The last page that came is kept, also past its death.
  bool Look();
  // From the last page: the sum over the series with these labels; 0 where there is none.
  [[nodiscard]] double Last(std::string_view metric, const MetricsPage::Labels& labels = {}) const;
  // Look, then Last.
  [[nodiscard]] double Now(std::string_view metric, const MetricsPage::Labels& labels = {});

  void Kill() { process_->Kill(SIGKILL); }
  void Pause() { process_->Kill(SIGSTOP); }
  void Resume() { process_->Kill(SIGCONT); }
  void Terminate() { process_->Kill(SIGTERM); }
  void Hangup() { process_->Kill(SIGHUP); }
  [[nodiscard]] bool Running() { return process_->Running(); }
  [[nodiscard]] std::optional<int> Wait(Deadline limit) { return process_->Wait(limit); }
  // SIGTERM, and the exit code when it came within the limit.
  std::optional<int> Stop(Deadline limit = std::chrono::seconds(30));

  [[nodiscard]] std::string Log() const { return process_->ErrorOutput(); }
  [[nodiscard]] std::string Output() const { return process_->Output(); }  // stdout
  // The lines on stderr that are not of the log: what `run` says to people.
  [[nodiscard]] std::vector<std::string> ErrorLines() const;

 private:
  std::string name_;
  std::unique_ptr<Process> process_;
  int port_ = 0;
  MetricsPage last_{""};
};

// Within the limit: /ready says so, or that it is ready.
void ExpectSays(const WorkerProcess& worker, const std::string& part,
                Deadline limit = std::chrono::seconds(40));
void ExpectReady(const WorkerProcess& worker, Deadline limit = std::chrono::seconds(40));

// The workers of one pipeline, the ended ones' last pages included.
class WorkerTeam {
 public:
  explicit WorkerTeam(WorkerOptions options) : options_(std::move(options)) {}

  // Named worker-1, worker-2, …, or a name that was there before. LIFE in its environment is its
  // number in the team, from 0: pipeline files may say ${LIFE} to tell which process it was.
  WorkerProcess& Add(std::string name = "");
  WorkerTeam& Start(int count);
  WorkerProcess& operator[](std::size_t at) { return *workers_.at(at); }
  [[nodiscard]] std::size_t size() const { return workers_.size(); }
  // Those that run, in order of their start.
  [[nodiscard]] std::vector<WorkerProcess*> Running();

  // Scrapes all that run and are not paused, then sums over all that ever were.
  void Look();
  [[nodiscard]] double Sum(std::string_view metric, const MetricsPage::Labels& labels = {}) const;
  [[nodiscard]] bool AllReady();

  // SIGTERM to all that run; "" when each ends with 0 within the limit, else what went wrong.
  [[nodiscard]] std::string StopAll(Deadline limit = std::chrono::seconds(40));
  // What the workers said last, for failure messages.
  [[nodiscard]] std::string Tails() const;

 private:
  WorkerOptions options_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
};

// `fencepost …` to its end, stderr apart.
Finished RunFencepost(std::vector<std::string> words, std::map<std::string, std::string> env = {},
                      Deadline limit = std::chrono::seconds(30));

}  // namespace fencepost::testing
