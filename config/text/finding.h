// What the checks of a pipeline file have to say: where, how bad, what, and by which rule. Values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fencepost::config {

// Counted from 1, in bytes.
struct Place {
  int line = 1;
  int col = 1;
  auto operator<=>(const Place&) const = default;
};

enum class Severity : std::uint8_t { kError, kWarning, kInfo };

struct Finding {
  std::string file;
  int line = 1;
  int col = 1;
  Severity severity = Severity::kError;
  std::string message;  // one line; holds no secret
  std::string rule;     // stable, one of Rules()
};

// FILE:LINE:COL: error|warning|info: message [rule]
std::string FormatFinding(const Finding& finding);
// ::error file=FILE,line=LINE,col=COL,title=RULE::MESSAGE, a workflow command of GitHub Actions,
// which shows it beside the line.
std::string FormatFindingGithub(const Finding& finding);
// A JSON array with one finding a line: file, line, column, severity, message, rule.
std::string FormatFindingsJson(std::span<const Finding> findings);
bool HasErrors(std::span<const Finding> findings);

struct Rule {
  std::string_view name;
  std::string_view meaning;
};
std::span<const Rule> Rules();

// Gathers the findings of one file.
class Findings {
 public:
  explicit Findings(std::string file) : file_(std::move(file)) {}
  void Error(Place at, std::string_view rule, std::string message) {
    Add(at, Severity::kError, rule, std::move(message));
  }
  void Warning(Place at, std::string_view rule, std::string message) {
    Add(at, Severity::kWarning, rule, std::move(message));
  }
  template <typename First, typename... More>
  void Error(Place at, std::string_view rule, fmt::format_string<First, More...> message,
             First&& first, More&&... more) {
    Error(at, rule, fmt::format(message, std::forward<First>(first), std::forward<More>(more)...));
  }
  template <typename First, typename... More>
  void Warning(Place at, std::string_view rule, fmt::format_string<First, More...> message,
               First&& first, More&&... more) {
    Warning(at, rule,
            fmt::format(message, std::forward<First>(first), std::forward<More>(more)...));
  }
  void Add(Place at, Severity severity, std::string_view rule, std::string message);
  // Sorted by place.
  std::vector<Finding> Take();

 private:
  std::string file_;
  std::vector<Finding> findings_;
};

}  // namespace fencepost::config
