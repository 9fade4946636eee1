// What logs in somewhere: a text, or a file that holds it and is read again at every login, so that
// a secret that was changed there needs no restart. A value; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace fencepost {

// A file's text as it was meant, whatever editor wrote it: without a byte order mark and the line
// ends behind it, and with plain ones.
std::string WithoutMarks(std::string text);
// A predicate; empty: it is one line, without blanks at its ends, which a login would count.
std::string_view ProblemOfLine(std::string_view text);

class Secret {
 public:
  Secret() = default;
  // From what a user of the library writes: a text.
  Secret(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  Secret(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)
  static Secret OfFile(std::string path);

  // Neither text nor file.
  [[nodiscard]] bool empty() const { return text_.empty() && path_.empty(); }
  [[nodiscard]] const std::string& path() const { return path_; }  // empty: a text
  // The text; of a file, its one line (ProblemOfLine), of 64 KiB at most. Error: what is wrong with
  // the file, in one line that holds nothing of it.
  [[nodiscard]] tl::expected<std::string, std::string> Read() const;

  bool operator==(const Secret&) const = default;

 private:
  std::string text_;
  std::string path_;
};

}  // namespace fencepost
