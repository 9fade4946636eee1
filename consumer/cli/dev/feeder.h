// Sends the lines of a file, or of standard input, as records (record_lines.h), not faster than
// they are processed: the cluster in this process keeps little. Also says what the pipeline waits
// for. A thread of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/dev/effect_log.h"
#include "consumer/kafka/client/producer.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/pipeline_test.h"
#include "consumer/pipeline/status.h"
#include "locking/base/error.h"
#include "locking/base/fd.h"
#include "locking/base/wake_up.h"

namespace fencepost::cli {

// Where records come from.
struct DevInput {
  Fd fd;             // not open: nowhere
  std::string name;  // for messages
  bool terminal = false;
  bool ends = false;  // the command ends with it, also without a record

  // FILE; "-": standard input; empty: standard input where somebody may write to it (a pipe, a
  // file, a terminal that is ours). Error: it cannot be read.
  static tl::expected<DevInput, Error> Open(const std::string& produce);
};

class Feeder {
 public:
  struct Calls {
    std::function<consumer::WorkerStatus()> status;
    std::function<void()> done;  // the input has ended, and all of it is processed
  };
  Feeder(const consumer::PipelineOptions& options, DevInput input, EffectLog& effects, Calls calls);
  ~Feeder();  // stops
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  tl::expected<void, Error> Start();
  void Stop();
  // After Stop. The input was to end, and each line of it was sent and is processed; or there was
  // no such input.
  [[nodiscard]] bool Complete() const { return !was_given_ || (told_done_ && bad_ == 0); }
  [[nodiscard]] bool was_given() const { return was_given_; }
  [[nodiscard]] std::uint64_t bad() const { return bad_; }  // lines that were not sent

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  [[nodiscard]] bool HasRoom() const;
  void PopSize();
  void Read();
  void TakeLine(std::string_view line);
  void Send(const consumer::GivenRecord& record);
  void Refuse(std::uint64_t line, std::string_view why);
  void TellState();
  [[nodiscard]] std::string StateNow();

  const consumer::PipelineOptions& options_;
  DevInput input_;
  EffectLog& effects_;
  const Calls calls_;
  std::unique_ptr<consumer::Producer> producer_;
  StopSwitch stop_;
  std::thread thread_;

  // The thread's.
  std::string unread_;  // the beginning of a line
  std::uint64_t line_ = 0, sent_ = 0, delivered_ = 0, bad_ = 0;
  std::deque<std::size_t> sizes_;  // of what was sent and is not finished, about
  std::size_t unfinished_bytes_ = 0;
  bool was_given_ = false, told_done_ = false;
  std::string state_ = "starting";
  bool ready_ = false;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point look_at_ = began_, progress_at_ = began_;
  std::uint64_t finished_ = 0;
};

}  // namespace fencepost::cli
