#include "consumer/cli/demo/picture.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace fencepost::cli {
namespace {

constexpr int kNarrowest = 40, kLowest = 10;  // columns and rows that a picture needs
constexpr int kAround = 6;                    // rows but those of the workers

enum class Ink { kPlain, kGreen, kRed, kCyan };
constexpr std::string_view kInks[] = {"", "\x1b[32m", "\x1b[31m", "\x1b[36m"};

// A line that ends at the right edge.
class Line {
 public:
  explicit Line(const Style& style) : color_(style.color), room_(style.width - 1) {}
  // `symbols`: each as wide as a column.
  Line& Add(const std::vector<std::string_view>& symbols, Ink ink) {
    const auto fit = std::min<std::size_t>(symbols.size(), static_cast<std::size_t>(room_));
    room_ -= static_cast<int>(fit);
    const bool inked = color_ && ink != Ink::kPlain;
    if (inked) text_ += kInks[static_cast<int>(ink)];
    for (std::size_t i = 0; i < fit; ++i) text_ += symbols[i];
    if (inked) text_ += "\x1b[0m";
    return *this;
  }
  Line& Add(std::string_view ascii, Ink ink = Ink::kPlain) {
    std::vector<std::string_view> symbols;
    for (std::size_t i = 0; i < ascii.size(); ++i) symbols.push_back(ascii.substr(i, 1));
    return Add(symbols, ink);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const bool color_;
  int room_;
  std::string text_;
};

struct StateWord {
  std::string_view word;
  Ink ink;
};

StateWord WordOf(const WorkerView& worker) {
  switch (worker.state) {
    case WorkerState::kKilled:
      return {"killed", Ink::kRed};
    case WorkerState::kFrozen:
      return {"frozen", Ink::kCyan};
    case WorkerState::kStopping:
      return {"stopping", Ink::kPlain};
    case WorkerState::kEnded:
      return {"ended", Ink::kPlain};
    case WorkerState::kRunning:
      break;
  }
  return worker.last.partitions == 0 ? StateWord{"joining", Ink::kPlain}
                                     : StateWord{"running", Ink::kGreen};
}

std::string LineOf(const WorkerView& worker, const Style& style) {
  const StateWord state = WordOf(worker);
  Line line(style);
  line.Add(fmt::format("  {:<10}", worker.name)).Add(fmt::format("{:<10}", state.word), state.ink);
  const bool struck = worker.state == WorkerState::kKilled || worker.state == WorkerState::kFrozen;
  if (struck) {
    line.Add(fmt::format("held {} locks when it was {}", Grouped(worker.last.held), state.word));
  } else {
    line.Add(fmt::format("{:>2} partitions  {:>6} locks held  {:>8} records done",
                         worker.last.partitions, Grouped(worker.last.held),
                         Grouped(worker.last.processed + worker.last.skipped)));
  }
  return line.text();
}

std::string RowsText(const Picture& picture) {
  return fmt::format("{} of {} orders in the table, {}/s", Grouped(static_cast<long>(picture.rows)),
                     Grouped(static_cast<long>(picture.orders)),
                     Grouped(static_cast<long>(picture.rows_per_second)));
}

std::string BarLine(const Picture& picture, const Style& style) {
  const double part =
      picture.orders == 0
          ? 0
          : std::min(1.0, static_cast<double>(picture.rows) / static_cast<double>(picture.orders));
  const std::string text =
      fmt::format("  {:>3} %  {}", static_cast<int>(100 * part), RowsText(picture));
  const int length = std::clamp(style.width - 4 - static_cast<int>(text.size()), 10, 30);
  const int full = static_cast<int>(length * part);
  const std::string_view on = style.blocks ? "█" : "#";
  const std::string_view off = style.blocks ? "░" : ".";
  return Line(style)
      .Add("  ")
      .Add(std::vector(static_cast<std::size_t>(full), on), Ink::kGreen)
      .Add(std::vector(static_cast<std::size_t>(length - full), off), Ink::kPlain)
      .Add(text)
      .text();
}

}  // namespace

Style StyleOf(const Terminal& terminal) {
  Style style;
  int wanted = 0;
  const std::string& variable = terminal.columns_variable;
  const char* const end = variable.data() + variable.size();
  if (std::from_chars(variable.data(), end, wanted).ptr != end || wanted < 0) wanted = 0;
  if (terminal.columns > 0) style.width = terminal.columns;
  // A line that is wider than the terminal would take two rows.
  if (wanted > 0) style.width = terminal.columns > 0 ? std::min(wanted, style.width) : wanted;
  if (terminal.rows > 0) style.height = terminal.rows;
  style.live = terminal.is_one && !terminal.term.empty() && terminal.term != "dumb" &&
               style.width >= kNarrowest && style.height >= kLowest;
  style.color = style.live && terminal.no_color.empty();
  std::string locale = terminal.locale;
  std::ranges::transform(locale, locale.begin(), [](unsigned char c) { return std::tolower(c); });
  style.blocks =
      locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  return style;
}

std::vector<std::string> Draw(const Picture& picture, const Style& style) {
  const std::size_t most = static_cast<std::size_t>(style.height - kAround);
  std::vector<std::string> lines = {""};
  for (std::size_t i = 0; i < std::min(most, picture.workers.size()); ++i) {
    lines.push_back(LineOf(picture.workers[i], style));
  }
  lines.push_back(BarLine(picture, style));
  const Totals& sum = picture.sum;
  lines.push_back(
      Line(style)
          .Add(fmt::format("  skipped {}, contended {}, expired {}, taken over {}, refused {}",
                           Grouped(sum.skipped), Grouped(sum.contended), Grouped(sum.expired),
                           Grouped(sum.takeovers), Grouped(sum.late_writes)))
          .text());
  lines.push_back(
      Line(style).Add(fmt::format("  {:>3} s  {}", picture.age.count(), picture.step)).text());
  return lines;
}

std::string ProgressLine(const Picture& picture) {
  return fmt::format("{:>3} s  {}; {}", picture.age.count(), RowsText(picture), picture.step);
}

int ColumnsOf(const std::string& line) {
  int columns = 0;
  bool escape = false;
  for (const char c : line) {
    if (escape) {
      escape = c != 'm';
    } else if (c == '\x1b') {
      escape = true;
    } else if ((c & 0xC0) != 0x80) {  // the first byte of a character
      ++columns;
    }
  }
  return columns;
}

std::vector<std::string> WordsOf(const Proof& proof) {
  const auto none_or = [](std::size_t count) {
    return count == 0 ? std::string("none") : Grouped(static_cast<std::int64_t>(count));
  };
  std::vector<std::string> words = {fmt::format(
      "{} orders, one worker killed, one frozen while it held locks: {} lost, {} "
      "doubled{}.",
      Grouped(static_cast<std::int64_t>(proof.orders)), none_or(proof.lost), none_or(proof.doubled),
      proof.foreign == 0 ? "" : fmt::format(", {} that nobody sent", proof.foreign))};
  words.push_back(proof.late_writes == 0
                      ? "The frozen worker saw that its locks were over, and wrote nothing late."
                      : fmt::format("The frozen worker's {} late {} refused.",
                                    Grouped(proof.late_writes),
                                    proof.late_writes == 1 ? "write was" : "writes were"));
  return words;
}

std::string Grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

}  // namespace fencepost::cli
