#include "consumer/pipeline/read_topics.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fencepost::consumer {
namespace {

// glibc's regcomp takes seconds and gigabytes, or ends the process, on what is longer than that.
constexpr std::size_t kLongestPattern = 500;
constexpr int kMostTimes = 100;

using Compiled = std::shared_ptr<const regex_t>;

struct Failure {
  int code = 0;
  std::string text;
};

// `failure`: where it does not compile, why.
Compiled Compile(const std::string& expression, Failure* failure = nullptr) {
  auto made = std::make_unique<regex_t>();
  const int code = regcomp(made.get(), expression.c_str(), REG_EXTENDED | REG_NOSUB);
  if (code == 0) {
    return {made.release(), [](const regex_t* one) {
              regfree(const_cast<regex_t*>(one));
              delete one;
            }};
  }
  if (failure != nullptr) {
    std::array<char, 200> text{};
    regerror(code, made.get(), text.data(), text.size());
    *failure = {code, text.data()};
  }
  return nullptr;
}

// Behind the ] of what begins at `open`; npos: it has none. A ] that comes first is one of the set.
std::size_t BehindSet(std::string_view pattern, std::size_t open) {
  std::size_t at = open + 1;
  if (at < pattern.size() && pattern[at] == '^') ++at;
  if (at < pattern.size() && pattern[at] == ']') ++at;
  for (; at < pattern.size() && pattern[at] != ']'; ++at) {
    const bool names = pattern[at] == '[' && at + 1 < pattern.size() &&
                       std::string_view(":.=").find(pattern[at + 1]) != std::string_view::npos;
    if (!names) continue;
    at = pattern.find(std::string{pattern[at + 1], ']'}, at + 2);
    if (at == std::string_view::npos) return at;
    ++at;
  }
  return at < pattern.size() ? at + 1 : std::string_view::npos;
}

std::string At(std::size_t index, std::string_view what) {
  return fmt::format("{}, at its character {}", what, index + 1);
}

// As {2,5}.
struct Bound {
  int most = 0;         // its highest number
  std::size_t end = 0;  // where its } is
};

// nullopt: none begins here.
std::optional<Bound> BoundAt(std::string_view pattern, std::size_t open) {
  Bound bound{0, open + 1};
  int number = 0;
  for (; bound.end < pattern.size() && pattern[bound.end] != '}'; ++bound.end) {
    const char c = pattern[bound.end];
    if (c != ',' && (c < '0' || c > '9')) return std::nullopt;
    number = c == ',' ? 0 : std::min(10 * number + (c - '0'), 10 * kMostTimes);
    bound.most = std::max(bound.most, number);
  }
  if (bound.end == pattern.size()) return std::nullopt;
  return bound;
}

// What regcomp takes and means otherwise once the pattern is in parentheses of ours, or takes too
// long for.
std::string ProblemOfParts(std::string_view pattern) {
  struct Group {
    std::size_t open = 0;
    bool has_bound = false;
  };
  std::vector<Group> open;
  bool bounded = false;  // what was read last has a bound
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool has_bound = std::exchange(bounded, false);
    switch (pattern[i]) {
      case '\0':
        return At(i, "it has a NUL");
      case '\\':
        ++i;
        if (i < pattern.size() && pattern[i] >= '1' && pattern[i] <= '9') {
          return At(i - 1, "it refers back to a group");
        }
        break;
      case '[': {
        const std::size_t behind = BehindSet(pattern, i);
        if (behind == std::string_view::npos) return At(i, "a [ is not closed");
        i = behind - 1;
        break;
      }
      case '(':
        open.push_back({i, false});
        break;
      case ')':
        if (open.empty()) return At(i, "a ) closes nothing");
        bounded = open.back().has_bound;
        open.pop_back();
        if (bounded && !open.empty()) open.back().has_bound = true;
        break;
      case '*':
      case '+':
      case '?':
        bounded = has_bound;
        break;
      case '{': {
        const std::optional<Bound> bound = BoundAt(pattern, i);
        if (!bound) break;
        if (bound->most > kMostTimes) return At(i, fmt::format("a bound is above {}", kMostTimes));
        if (has_bound) return At(i, "a bound is about what has one already");
        i = bound->end;
        bounded = true;
        if (!open.empty()) open.back().has_bound = true;
        break;
      }
      default:
        break;
    }
  }
  return open.empty() ? "" : At(open.back().open, "a ( is not closed");
}

}  // namespace

std::string ProblemOfPattern(std::string_view pattern) {
  if (pattern == "^") return "nothing follows the ^";
  if (pattern.size() > kLongestPattern) {
    return fmt::format("it is longer than {} characters", kLongestPattern);
  }
  if (std::string problem = ProblemOfParts(pattern); !problem.empty()) return problem;
  Failure failure;
  if (Compile(std::string(pattern), &failure)) return "";
  // regcomp does not say where: behind the first part that fails in the same way.
  std::size_t end = pattern.size();
  for (std::size_t size = 1; size < pattern.size() && failure.code != REG_EESCAPE; ++size) {
    Failure part;
    if (Compile(std::string(pattern.substr(0, size)), &part) || part.code != failure.code) continue;
    end = size;
    break;
  }
  return At(end - 1, failure.text);
}

ReadTopics::ReadTopics(const std::vector<std::string>& entries) {
  std::vector<std::string_view> patterns;
  for (const std::string& entry : entries) {
    if (!IsPattern(entry)) {
      names_.push_back(entry);
    } else if (ProblemOfPattern(entry).empty()) {
      patterns.push_back(std::string_view(entry).substr(1));
    }
  }
  if (patterns.empty()) return;
  pattern_ = fmt::format("^({})$", fmt::join(patterns, "|"));
  compiled_ = Compile(pattern_);
}

bool ReadTopics::Names(std::string_view topic) const {
  return std::ranges::find(names_, topic) != names_.end();
}

bool ReadTopics::Matches(std::string_view topic) const {
  return compiled_ != nullptr && !IsInternalTopic(topic) &&
         regexec(compiled_.get(), std::string(topic).c_str(), 0, nullptr, 0) != REG_NOMATCH;
}

}  // namespace fencepost::consumer
