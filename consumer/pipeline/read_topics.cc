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
  int least = 0;
  int most = 0;         // its highest number
  std::size_t end = 0;  // where its } is
};

// nullopt: none begins here.
std::optional<Bound> BoundAt(std::string_view pattern, std::size_t open) {
  Bound bound{0, 0, open + 1};
  int number = 0;
  bool first = true;
  for (; bound.end < pattern.size() && pattern[bound.end] != '}'; ++bound.end) {
    const char c = pattern[bound.end];
    if (c != ',' && (c < '0' || c > '9')) return std::nullopt;
    first = first && c != ',';
    number = c == ',' ? 0 : std::min(10 * number + (c - '0'), 10 * kMostTimes);
    if (first) bound.least = number;
    bound.most = std::max(bound.most, number);
  }
  if (bound.end == pattern.size()) return std::nullopt;
  return bound;
}

// Whether what was read may match nothing: regcomp takes exponential time for a few repetitions of
// such, `(a*)*(a*)*…`.
class Emptiness {
 public:
  void OnPart(bool may_be_empty) {
    sequence_ = sequence_ && last_;
    last_ = may_be_empty;
    repeatable_ = true;
  }
  // ^, $, a word's edge: regcomp refuses to repeat one.
  void OnAnchor() {
    OnPart(true);
    repeatable_ = false;
  }
  void OnAlternative() {
    any_ = MayBeEmpty();
    sequence_ = last_ = true;
    repeatable_ = false;
  }
  // False: it is about what may be empty.
  bool OnRepetition(int least) {
    const bool fine = !repeatable_ || !last_;
    if (least == 0) last_ = true;
    return fine;
  }
  [[nodiscard]] bool MayBeEmpty() const { return any_ || (sequence_ && last_); }

 private:
  bool any_ = false;      // an alternative before this one
  bool sequence_ = true;  // all of this one but its last part
  bool last_ = true;
  bool repeatable_ = false;  // there is a last part
};

// What regcomp takes and means otherwise once the pattern is in parentheses of ours, or takes too
// long for.
class Parts {
 public:
  explicit Parts(std::string_view pattern) : pattern_(pattern) {}

  // Empty: none.
  std::string Problem() {
    for (; at_ < pattern_.size(); ++at_) {
      if (std::string problem = Next(); !problem.empty()) return problem;
    }
    return open_.size() == 1 ? "" : At(open_.back().open, "a ( is not closed");
  }

 private:
  struct Group {
    std::size_t open = 0;
    bool has_bound = false;
    Emptiness emptiness{};
  };

  std::string Next() {
    const bool has_bound = std::exchange(bounded_, false);
    switch (pattern_[at_]) {
      case '\0':
        return At(at_, "it has a NUL");
      case '\\':
        return Escape();
      case '[': {
        const std::size_t behind = BehindSet(pattern_, at_);
        if (behind == std::string_view::npos) return At(at_, "a [ is not closed");
        at_ = behind - 1;
        emptiness().OnPart(false);
        return "";
      }
      case '(':
        open_.push_back({.open = at_});
        return "";
      case ')':
        return Close();
      case '|':
        emptiness().OnAlternative();
        return "";
      case '^':
      case '$':
        emptiness().OnAnchor();
        return "";
      case '*':
      case '+':
      case '?':
        bounded_ = has_bound;
        return Repeat(pattern_[at_] == '+' ? 1 : 0);
      case '{':
        return Bounded(has_bound);
      default:
        emptiness().OnPart(false);
        return "";
    }
  }
  std::string Escape() {
    const char what = ++at_ < pattern_.size() ? pattern_[at_] : 'x';
    if (what >= '1' && what <= '9') return At(at_ - 1, "it refers back to a group");
    if (std::string_view("bB<>`'").find(what) != std::string_view::npos) {
      emptiness().OnAnchor();
    } else {
      emptiness().OnPart(false);
    }
    return "";
  }
  std::string Close() {
    if (open_.size() == 1) return At(at_, "a ) closes nothing");
    const Group closed = std::exchange(open_.back(), {});
    open_.pop_back();
    bounded_ = closed.has_bound;
    open_.back().has_bound = open_.back().has_bound || bounded_;
    emptiness().OnPart(closed.emptiness.MayBeEmpty());
    return "";
  }
  std::string Bounded(bool has_bound) {
    const std::optional<Bound> bound = BoundAt(pattern_, at_);
    if (!bound) {
      emptiness().OnPart(false);
      return "";
    }
    if (bound->most > kMostTimes) return At(at_, fmt::format("a bound is above {}", kMostTimes));
    if (has_bound) return At(at_, "a bound is about what has one already");
    if (std::string problem = Repeat(bound->least); !problem.empty()) return problem;
    at_ = bound->end;
    bounded_ = true;
    open_.back().has_bound = true;
    return "";
  }
  std::string Repeat(int least) {
    return emptiness().OnRepetition(least) ? "" : At(at_, "it repeats what may be empty");
  }
  Emptiness& emptiness() { return open_.back().emptiness; }

  const std::string_view pattern_;
  std::size_t at_ = 0;
  bool bounded_ = false;  // what was read last has a bound
  std::vector<Group> open_{{}};
};

}  // namespace

std::string ProblemOfPattern(std::string_view pattern) {
  if (pattern == "^") return "nothing follows the ^";
  if (pattern.size() > kLongestPattern) {
    return fmt::format("it is longer than {} characters", kLongestPattern);
  }
  if (std::string problem = Parts(pattern).Problem(); !problem.empty()) return problem;
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
