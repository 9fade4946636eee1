// The topics that are there of those that a pipeline with patterns reads, as of each assignment;
// which have come and gone is told. One thread.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/kafka/client/admin.h"
#include "consumer/pipeline/read_topics.h"
#include "locking/base/error.h"
#include "locking/core/observer.h"

namespace fencepost::consumer {

class MatchedTopics {
 public:
  using Note =
      std::function<void(locking::Severity, std::string_view event, std::string_view text)>;

  MatchedTopics(ReadTopics read, Note note) : read_(std::move(read)), note_(std::move(note)) {}

  [[nodiscard]] const ReadTopics& read() const { return read_; }
  [[nodiscard]] bool any() const { return !read_.pattern().empty(); }  // a pattern
  // By name, as of the last Take.
  [[nodiscard]] const std::vector<KnownTopic>& now() const { return now_; }
  // What the brokers say (AskTopics). Error: "too_many_topics".
  std::optional<Error> Take(std::vector<KnownTopic> topics);
  // The brokers know none that a pattern matches: those that come are new.
  void TakeNoneThatMatches();
  // A pattern matches it, and it was not there at a Take before.
  [[nodiscard]] bool CameLater(const std::string& topic) const { return later_.contains(topic); }

 private:
  const ReadTopics read_;
  const Note note_;
  std::vector<KnownTopic> now_;
  std::set<std::string> later_;
  bool taken_ = false;
};

}  // namespace fencepost::consumer
