// What the demo shows: what it knows in, lines out. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace fencepost::cli {

// What a worker's /metrics says, as far as the demo shows it.
struct Totals {
  std::int64_t processed = 0, skipped = 0, held = 0, lag = 0, commit_gap = 0, partitions = 0,
               contended = 0, expired = 0, fenced = 0, late_writes = 0, takeovers = 0,
               violations = 0;
};

enum class WorkerState { kRunning, kKilled, kFrozen, kStopping, kEnded };

struct WorkerView {
  std::string name;
  WorkerState state = WorkerState::kRunning;
  Totals last;  // what it said last
};

struct Picture {
  std::vector<WorkerView> workers;
  Totals sum;
  std::size_t rows = 0, orders = 0;  // in the table; in the end
  double rows_per_second = 0;
  std::chrono::seconds age{0};
  std::string step;  // what the demo waits for
};

// What the process knows of its output; a variable that is not set is empty.
struct Terminal {
  bool is_one = false;
  int columns = 0, rows = 0;  // 0: unknown
  std::string term, no_color, columns_variable, locale;
};

struct Style {
  bool live = false;    // a picture that is redrawn in place; else plain lines
  bool color = false;   // never without live
  bool blocks = false;  // the bar is made of block characters, which need UTF-8
  int width = 80, height = 24;
};
Style StyleOf(const Terminal& terminal);

// Lines of at most style.width - 1 columns, and fewer than style.height of them.
std::vector<std::string> Draw(const Picture& picture, const Style& style);
// The same in one plain line.
std::string ProgressLine(const Picture& picture);
// How many columns a line of Draw takes.
int ColumnsOf(const std::string& line);

// What the audit counted.
struct Proof {
  std::size_t orders = 0, lost = 0, doubled = 0, foreign = 0;
  std::int64_t late_writes = 0;
};
// What was proved, in words.
std::vector<std::string> WordsOf(const Proof& proof);

std::string Grouped(std::int64_t number);  // 19,023

}  // namespace fencepost::cli
