// Which topics a pipeline reads, by kafka.topics: an entry is a topic's name, or a pattern, which
// begins with ^. A pattern is a POSIX extended regular expression (regcomp, as librdkafka's own
// subscription takes it) for the whole name, and matches no internal topic (__…). Values; any
// thread.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <regex.h>

namespace fencepost::consumer {

inline constexpr std::size_t kMostTopics = 1000;  // of a pipeline that has a pattern

inline bool IsPattern(std::string_view entry) { return entry.starts_with('^'); }
inline bool IsInternalTopic(std::string_view name) { return name.starts_with("__"); }

// Why what begins with ^ is no pattern, and at which character, for people; empty: it is one.
std::string ProblemOfPattern(std::string_view pattern);

class ReadTopics {
 public:
  ReadTopics() = default;
  // A pattern that has a problem matches nothing.
  ReadTopics(const std::vector<std::string>& entries);  // NOLINT(google-explicit-constructor)
  ReadTopics(std::initializer_list<std::string> entries)
      : ReadTopics(std::vector<std::string>(entries)) {}

  [[nodiscard]] bool Has(std::string_view topic) const { return Names(topic) || Matches(topic); }
  [[nodiscard]] bool Names(std::string_view topic) const;
  [[nodiscard]] bool Matches(std::string_view topic) const;  // by a pattern

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // All patterns as one, anchored at both ends; empty: there is none.
  [[nodiscard]] const std::string& pattern() const { return pattern_; }

 private:
  std::vector<std::string> names_;
  std::string pattern_;
  std::shared_ptr<const regex_t> compiled_;
};

}  // namespace fencepost::consumer
