#include "consumer/cli/demo/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace fencepost::cli {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Style StyleNow() {
  Terminal terminal{.is_one = isatty(STDOUT_FILENO) == 1,
                    .term = Variable("TERM"),
                    .no_color = Variable("NO_COLOR"),
                    .columns_variable = Variable("COLUMNS")};
  for (const char* name : {"LANG", "LC_CTYPE", "LC_ALL"}) {  // the last one counts
    if (const std::string value = Variable(name); !value.empty()) terminal.locale = value;
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    terminal.columns = size.ws_col;
    terminal.rows = size.ws_row;
  }
  return StyleOf(terminal);
}

// At once, so that a terminal shows no half of it.
void Write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void Screen::Say(const std::string& line) {
  std::string text = shown_.empty() ? "" : Erase(StyleNow().width);
  text += line + "\n";
  for (const std::string& one : shown_) text += one + "\n";
  Write(text);
  next_line_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
}

void Screen::Show(const Picture& picture) {
  const Style style = StyleNow();
  if (!style.live) {
    if (std::chrono::steady_clock::now() >= next_line_) Say(ProgressLine(picture));
    return;
  }
  std::string text = shown_.empty() ? "" : Erase(style.width);
  shown_ = Draw(picture, style);
  for (const std::string& line : shown_) text += line + "\n";
  Write(text);
}

std::string Screen::Erase(int width) const {
  int rows = 0;  // it may have become narrower since
  for (const std::string& line : shown_) rows += std::max(1, (ColumnsOf(line) + width - 1) / width);
  return fmt::format("\x1b[{}A\r\x1b[J", rows);
}

}  // namespace fencepost::cli
