#include "consumer/cli/shared/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace fencepost::cli {
namespace {

constexpr std::size_t kCells = 30;
constexpr std::chrono::milliseconds kRedraw{100};

double Rate(std::size_t count, std::chrono::duration<double> since) {
  return since.count() <= 0 ? 0 : static_cast<double>(count) / since.count();
}

}  // namespace

std::string ProgressBar(const std::string& what, std::size_t count, std::size_t total,
                        std::chrono::duration<double> since) {
  const std::size_t full = total == 0 ? kCells : std::min(kCells, count * kCells / total);
  return fmt::format("[{}{}] {}/{} {}, {:.0f}/s", std::string(full, '#'),
                     std::string(kCells - full, '-'), count, total, what, Rate(count, since));
}

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)), total_(total), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (bar_there_) std::fputc('\n', stderr);
}

void Progress::Show(std::size_t count) {
  const Clock::time_point now = Clock::now();
  if (terminal_) {
    if (count < total_ && now - drawn_ < kRedraw) return;
    drawn_ = now;
    bar_there_ = true;
    fmt::print(stderr, "\r{}\033[K", ProgressBar(what_, count, total_, now - begun_));
    std::fflush(stderr);
  } else if (count / kEvery > told_ / kEvery) {
    told_ = count;
    fmt::print(stderr, "{}/{} {}, {:.0f}/s\n", count, total_, what_, Rate(count, now - begun_));
  }
}

void Progress::Clear() {
  if (!bar_there_) return;
  fmt::print(stderr, "\r\033[K");
  bar_there_ = false;
  drawn_ = {};
}

}  // namespace fencepost::cli
