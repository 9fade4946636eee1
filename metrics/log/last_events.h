// The last errors and warnings of each pipeline, for /status and the page. Not thread-safe.
//
// The same again (event, text, whatever record) is one entry with a count, at the place of the last
// one. Of each level at most kLast stay, so warnings push no error out; when one too many comes,
// the oldest of the event that has most entries goes, so a flood pushes out only itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/pipeline/status.h"

namespace fencepost::metrics {

class LastEvents {
 public:
  static constexpr std::size_t kLast = 20;  // of a level and a pipeline

  // `text` is what repeats; `shown` is the same with the record it is about, if any. What is less
  // severe than a warning is left out.
  void Keep(locking::Severity level, std::string_view pipeline, std::string_view event,
            std::string_view text, std::string shown, std::chrono::milliseconds unix_time);

  // Of both levels, the one that came last is the last.
  [[nodiscard]] std::vector<consumer::ErrorStatus> Of(std::string_view pipeline) const;

 private:
  struct Entry {
    std::string text;  // without the record
    consumer::ErrorStatus status;
  };
  using Entries = std::vector<Entry>;
  struct OfPipeline {
    Entries errors, warnings;  // oldest first
  };

  static void DropOne(Entries& entries);

  std::map<std::string, OfPipeline, std::less<>> pipelines_;
};

}  // namespace fencepost::metrics
