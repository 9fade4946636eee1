// A rough scanner for one common mistake: {password: ${X}} or [json:/x?]. It runs only when the
// parser has refused the text, to say what is wrong in words that help.
#include <string>

#include "config/read/tree.h"

namespace fencepost::config {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {
    if (text.starts_with("\xef\xbb\xbf")) at_ = line_start_ = 3;
  }

  std::optional<Place> Run() {
    while (at_ < text_.size()) {
      SkipBlanks();
      if (at_ >= text_.size()) break;
      if (const std::optional<Place> found = open_.empty() ? Block() : Flow()) return found;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n';
  }
  [[nodiscard]] static bool Blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
  }
  [[nodiscard]] Place Here() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }

  void Step() {
    if (text_[at_++] != '\n') return;
    ++line_;
    line_start_ = at_;
  }
  void SkipLine() {
    while (at_ < text_.size() && text_[at_] != '\n') Step();
  }
  void SkipBlanks() {
    while (at_ < text_.size()) {
      const bool comment = Peek() == '#' && (at_ == line_start_ || Blank(text_[at_ - 1]));
      if (comment) {
        SkipLine();
      } else if (Blank(Peek())) {
        Step();
      } else {
        return;
      }
    }
  }
  void SkipQuoted() {
    const char quote = Peek();
    Step();
    while (at_ < text_.size()) {
      const char c = Peek();
      Step();
      if (c == '\\' && quote == '"' && at_ < text_.size()) {
        Step();
      } else if (c == quote && quote == '\'' && Peek() == '\'') {
        Step();
      } else if (c == quote) {
        return;
      }
    }
  }
  // The lines of a | or > text: all that are empty or indented deeper than the line it began on.
  void SkipBlockText() {
    std::size_t indent = line_start_;
    while (indent < text_.size() && (text_[indent] == ' ' || text_[indent] == '-')) ++indent;
    const std::size_t parent = indent - line_start_;
    SkipLine();
    while (at_ < text_.size()) {
      std::size_t next = at_ + 1;
      while (next < text_.size() && text_[next] == ' ') ++next;
      const bool empty = next >= text_.size() || text_[next] == '\n' || text_[next] == '\r';
      if (!empty && next - at_ - 1 <= parent) return;
      Step();
      SkipLine();
    }
  }

  // Outside of {} and []: at the start of a token.
  std::optional<Place> Block() {
    const char c = Peek();
    if (c == '{' || c == '[') {
      Push(c);
    } else if (c == '"' || c == '\'') {
      SkipQuoted();
    } else if (c == '|' || c == '>') {
      SkipBlockText();
    } else if ((c == '-' || c == ':' || c == '?') && Blank(Peek(1))) {
      Step();
    } else {
      while (Peek() != '\n' && !(Peek() == ':' && Blank(Peek(1))) &&
             !(Blank(Peek()) && Peek(1) == '#')) {
        Step();
      }
    }
    return std::nullopt;
  }

  std::optional<Place> Flow() {
    const char c = Peek();
    if (c == '{' || c == '[') {
      Push(c);
    } else if (c == '}' || c == ']') {
      open_.pop_back();
      Step();
    } else if (c == '"' || c == '\'') {
      SkipQuoted();
    } else if (c == ',' || ((c == ':' || c == '?') && Blank(Peek(1)))) {
      Step();
    } else {
      return PlainInFlow();
    }
    return std::nullopt;
  }

  std::optional<Place> PlainInFlow() {
    const Place start = Here();
    while (at_ < text_.size()) {
      const char c = Peek();
      if (c == ',' || c == '[' || c == ']' || c == '\n') return std::nullopt;
      if (c == '}' && open_.back() == '{') return std::nullopt;
      if (c == '{' || c == '}' || c == '?') return start;
      if (c == ':' && (Blank(Peek(1)) || Peek(1) == ',')) {
        Step();
        return std::nullopt;
      }
      if (Blank(c) && Peek(1) == '#') return std::nullopt;
      Step();
    }
    return std::nullopt;
  }

  void Push(char bracket) {
    open_.push_back(bracket);
    Step();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  std::string open_;  // the { and [ that are open
};

}  // namespace

std::optional<Place> FindUnquotedFlowValue(std::string_view text) { return Scanner(text).Run(); }

}  // namespace fencepost::config
