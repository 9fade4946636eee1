// When a process of `run --processes` starts, starts again, is stopped and is killed, and with
// which exit code all of it ends. A value: what happened goes in with the time, what to do comes
// out.
//
// - A process that a signal ended is started again, and so is one that ended with 0 unasked; after
//   `first_wait`, twice that each time, up to `longest_wait`; from the first again once it has run
//   for `steady`.
// - One that ended by its own decision (another code: a file that is wrong, a record that stops the
//   pipeline) ends all: the others are drained, and its code is that of all.
// - A stop is sent to all at once; a second one is handed on. A process that still runs when its
//   time is up is killed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace fencepost::cli {

struct ProcessEnd {
  bool by_signal = false;
  int value = 0;  // the signal's number, or the exit code
};

class Supervision {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  struct Options {
    int processes = 1;
    Duration first_wait = std::chrono::milliseconds(500);
    Duration longest_wait = std::chrono::seconds(30);
    Duration steady = std::chrono::minutes(1);
    Duration stop_limit = std::chrono::seconds(40);     // from a stop to the kill
    Duration hurried_limit = std::chrono::seconds(10);  // from a second one
  };
  enum class Act : std::uint8_t { kStart, kStop, kKill };
  struct Action {
    Act act;
    int process;
    bool operator==(const Action&) const = default;
  };
  using Actions = std::vector<Action>;

  explicit Supervision(Options options);

  // What is due: starts at first, and again; kills. Each start is answered by OnStarted or, where
  // the system refused it, by OnEnded.
  Actions OnTime(Time now);
  void OnStarted(int process, Time now);
  Actions OnEnded(int process, ProcessEnd end, Time now);
  Actions OnStop(Time now);

  // When OnTime is due next; nothing: only when something happens.
  [[nodiscard]] std::optional<Time> next() const;
  // Once nothing runs any more and nothing is to be started.
  [[nodiscard]] std::optional<int> exit_code() const;
  [[nodiscard]] bool stopping() const { return stopping_; }
  [[nodiscard]] bool running(int process) const { return Of(process).running; }
  // When it starts again; nothing while it runs, or never.
  [[nodiscard]] std::optional<Time> starts_at(int process) const { return Of(process).start_at; }
  // Since the beginning, the first start not counted.
  [[nodiscard]] std::uint64_t restarts(int process) const { return Of(process).restarts; }

 private:
  struct State {
    bool running = false;
    std::optional<Time> start_at;  // due then
    Time started{};
    Duration wait{0};  // before the last start; 0: none
    std::uint64_t starts = 0, restarts = 0;
  };
  [[nodiscard]] const State& Of(int process) const {
    return states_.at(static_cast<std::size_t>(process));
  }
  State& Of(int process) { return states_.at(static_cast<std::size_t>(process)); }
  Actions StopAll(Time now);
  [[nodiscard]] bool AnyRuns() const;

  const Options options_;
  std::vector<State> states_;
  bool stopping_ = false;
  bool killed_ = false;
  std::optional<Time> kill_at_;
  int code_ = 0;
};

}  // namespace fencepost::cli
