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

// Counted from 1, in bytes. What --set gives has no lines: 0.
struct Place {
  int line = 1;
  int col = 1;
  int source = 0;  // among those of Findings
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
  bool operator==(const Finding&) const = default;
};

// FILE:LINE:COL: error|warning|info: message [rule]; without :LINE:COL where the line is 0.
std::string FormatFinding(const Finding& finding);
// ::error file=FILE,line=LINE,col=COL,title=RULE::MESSAGE, a workflow command of GitHub Actions,
// which shows it beside the line.
std::string FormatFindingGithub(const Finding& finding);
// A JSON array with one finding a line: file, line, column, severity, message, rule.
std::string FormatFindingsJson(std::span<const Finding> findings);
bool HasErrors(std::span<const Finding> findings);
// Those of `more` that `all` does not hold yet: what pipelines share is told once.
void AddNew(std::vector<Finding>& all, std::span<const Finding> more);

struct Rule {
  std::string_view name;
  std::string_view meaning;
};
std::span<const Rule> Rules();

// Gathers the findings of one pipeline.
class Findings {
 public:
  explicit Findings(std::string file) : Findings(std::vector{std::move(file)}) {}
  // Its file, those beside it, and what the command line sets.
  explicit Findings(std::vector<std::string> sources) : sources_(std::move(sources)) {}
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
  [[nodiscard]] const std::string& SourceOf(Place at) const {
    return sources_[static_cast<std::size_t>(at.source)];
  }
  // Sorted by place, the pipeline's own file first.
  std::vector<Finding> Take();

 private:
  std::vector<std::string> sources_;
  std::vector<std::pair<Place, Finding>> findings_;
};

// FILE:LINE:COL, or FILE where the line is 0.
std::string PlaceText(const std::string& file, int line, int col);

}  // namespace fencepost::config
