#include "metrics/log/last_events.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fencepost::metrics {

using consumer::ErrorStatus;
using locking::Severity;

void LastEvents::Keep(Severity level, std::string_view pipeline, std::string_view event,
                      std::string_view text, std::string shown,
                      std::chrono::milliseconds unix_time) {
  if (level < Severity::kWarn) return;
  auto found = pipelines_.find(pipeline);
  if (found == pipelines_.end()) found = pipelines_.try_emplace(std::string(pipeline)).first;
  Entries& entries = level == Severity::kError ? found->second.errors : found->second.warnings;
  const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& one) {
    return one.status.event == event && one.text == text;
  });
  if (same != entries.end()) {
    same->status.text = std::move(shown);
    same->status.when = unix_time;
    ++same->status.count;
    std::rotate(same, std::next(same), entries.end());
    return;
  }
  entries.push_back({std::string(text), ErrorStatus{.when = unix_time,
                                                    .event = std::string(event),
                                                    .text = std::move(shown),
                                                    .level = level,
                                                    .count = 1,
                                                    .first = unix_time}});
  if (entries.size() > kLast) DropOne(entries);
}

void LastEvents::DropOne(Entries& entries) {
  const auto count = [&entries](const Entry& one) {
    return std::count_if(entries.begin(), entries.end(), [&one](const Entry& other) {
      return other.status.event == one.status.event;
    });
  };
  // max_element takes the first of several: the oldest.
  entries.erase(
      std::max_element(entries.begin(), entries.end(),
                       [&count](const Entry& a, const Entry& b) { return count(a) < count(b); }));
}

std::vector<ErrorStatus> LastEvents::Of(std::string_view pipeline) const {
  std::vector<ErrorStatus> all;
  const auto found = pipelines_.find(pipeline);
  if (found == pipelines_.end()) return all;
  for (const Entries* entries : {&found->second.warnings, &found->second.errors}) {
    for (const Entry& entry : *entries) all.push_back(entry.status);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ErrorStatus& a, const ErrorStatus& b) { return a.when < b.when; });
  return all;
}

}  // namespace fencepost::metrics
