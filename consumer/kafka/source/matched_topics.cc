#include "consumer/kafka/source/matched_topics.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fencepost::consumer {
namespace {

constexpr std::size_t kMostTold = 20;

// Those of `topics` that `others` lack.
std::vector<std::string> Without(const std::vector<KnownTopic>& topics,
                                 const std::vector<KnownTopic>& others) {
  std::vector<std::string> names;
  for (const KnownTopic& topic : topics) {
    const bool both = std::ranges::binary_search(others, topic.name, {}, &KnownTopic::name);
    if (!both) names.push_back(topic.name);
  }
  return names;
}

std::string Listed(std::vector<std::string> names) {
  const std::size_t more = names.size() - std::min(names.size(), kMostTold);
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::optional<Error> MatchedTopics::Take(std::vector<KnownTopic> topics) {
  if (topics.size() > kMostTopics) {
    return Error{"too_many_topics",
                 fmt::format("{} topics match, and a pipeline with a pattern reads at most {}",
                             topics.size(), kMostTopics),
                 "kafka.topics", "match fewer, in several pipelines"};
  }
  const std::vector<KnownTopic> before = std::exchange(now_, std::move(topics));
  const auto found = Without(now_, before);
  const auto gone = Without(before, now_);
  if (std::exchange(taken_, true)) {
    std::ranges::copy_if(found, std::inserter(later_, later_.end()),
                         [this](const std::string& name) { return !read_.Names(name); });
  }
  if (!gone.empty()) {
    note_(locking::Severity::kWarn, "topics_gone",
          fmt::format("not there any more, and not read: {}", Listed(gone)));
  }
  if (!found.empty()) {
    note_(locking::Severity::kInfo, "topics_found", fmt::format("read: {}", Listed(found)));
  }
  return std::nullopt;
}

void MatchedTopics::TakeNoneThatMatches() {
  std::vector<KnownTopic> named = now_;
  std::erase_if(named, [this](const KnownTopic& topic) { return read_.Matches(topic.name); });
  (void)Take(std::move(named));  // fewer than before are not too many
}

}  // namespace fencepost::consumer
