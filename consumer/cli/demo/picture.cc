#include "consumer/cli/demo/picture.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fencepost::cli {
namespace {

constexpr int kNarrowest = 40, kLowest = 10;  // columns and rows that a picture needs
constexpr int kAround = 6;                    // rows but those of the workers

enum class Ink { kPlain, kGreen, kRed, kCyan };
constexpr std::string_view kInks[] = {"", "\x1b[32m", "\x1b[31m", "\x1b[36m"};

// A line of parts. The first that does not fit ends it, so that no number is cut.
class Line {
 public:
  explicit Line(const Style& style)
      : color_(style.color), room_(static_cast<std::size_t>(style.width - 1)) {}
  Line& Add(std::string_view ascii, Ink ink = Ink::kPlain) { return Add(ascii, ascii.size(), ink); }
  Line& Add(std::string_view text, std::size_t columns, Ink ink) {
    room_ = columns > room_ ? 0 : room_;
    if (room_ == 0) return *this;
    room_ -= columns;
    const bool inked = color_ && ink != Ink::kPlain;
    text_ += fmt::format("{}{}{}", inked ? kInks[static_cast<int>(ink)] : "", text,
                         inked ? "\x1b[0m" : "");
    return *this;
  }
  Line& AddCut(std::string_view ascii) {
    if (ascii.size() <= room_) return Add(ascii);
    return Add(std::string(ascii.substr(0, room_ - 3)) + "...");
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const bool color_;
  std::size_t room_;
  std::string text_;
};

std::string Repeated(std::string_view symbol, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += symbol;
  return text;
}

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
    line.Add(fmt::format("held {} locks", Grouped(worker.last.held)))
        .Add(fmt::format(" when it was {}", state.word));
  } else {
    line.Add(fmt::format("{:>2} partitions", worker.last.partitions))
        .Add(fmt::format("  {:>6} locks held", Grouped(worker.last.held)))
        .Add(fmt::format("  {:>8} records done",
                         Grouped(worker.last.processed + worker.last.skipped)));
  }
  return line.text();
}

// "11,833 of 19,023", " orders in the table", ", 3,214/s".
std::array<std::string, 3> RowsTexts(const Picture& picture) {
  const auto text = [](auto number) { return Grouped(static_cast<std::int64_t>(number)); };
  return {text(picture.rows) + " of " + text(picture.orders), " orders in the table",
          ", " + text(picture.rows_per_second) + "/s"};
}

std::string BarLine(const Picture& picture, const Style& style) {
  const double part =
      picture.orders == 0
          ? 0
          : std::min(1.0, static_cast<double>(picture.rows) / static_cast<double>(picture.orders));
  const auto texts = RowsTexts(picture);
  const auto beside = static_cast<int>(texts[0].size() + texts[1].size() + texts[2].size());
  const int length = std::clamp(style.width - 13 - beside, 10, 30);
  const int full = static_cast<int>(length * part);
  Line line(style);
  line.Add("  ");
  if (full > 0) line.Add(Repeated(style.blocks ? "█" : "#", full), full, Ink::kGreen);
  line.Add(Repeated(style.blocks ? "░" : ".", length - full), length - full, Ink::kPlain);
  line.Add(fmt::format("  {:>3} %  {}", static_cast<int>(100 * part), texts[0]));
  return line.Add(texts[1]).Add(texts[2]).text();
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
  Line locks(style);
  locks.Add("  skipped " + Grouped(sum.skipped));
  for (const auto& [what, count] : {std::pair(", contended ", sum.contended),
                                    {", expired ", sum.expired},
                                    {", taken over ", sum.takeovers},
                                    {", refused ", sum.late_writes}}) {
    locks.Add(what + Grouped(count));
  }
  lines.push_back(locks.text());
  lines.push_back(
      Line(style).AddCut(fmt::format("  {:>3} s  {}", picture.age.count(), picture.step)).text());
  return lines;
}

std::string ProgressLine(const Picture& picture) {
  const auto [count, of_what, rate] = RowsTexts(picture);
  return fmt::format("{:>3} s  {}{}{}; {}", picture.age.count(), count, of_what, rate,
                     picture.step);
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
