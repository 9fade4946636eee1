// How far a long command is, on stderr: a bar with count, total and rate where stderr is a
// terminal, else a plain line every 1,000. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace fencepost::cli {

class Progress {
 public:
  // `what`: the word for what is counted, as in "replayed".
  Progress(std::string what, std::size_t total);
  ~Progress();  // ends the bar's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call as often as it suits: the terminal is written to ten times a second at most.
  void Show(std::size_t count);
  // Before another line is printed to stderr: clears the bar; the next Show draws it again.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kEvery = 1000;

  const std::string what_;
  const std::size_t total_;
  const bool terminal_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point drawn_{};
  std::size_t told_ = 0;
  bool bar_there_ = false;
};

// "[#####-----]  512/1024 replayed, 300/s".
std::string ProgressBar(const std::string& what, std::size_t count, std::size_t total,
                        std::chrono::duration<double> since);

}  // namespace fencepost::cli
