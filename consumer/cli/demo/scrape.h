// What a worker's /metrics says, as far as the demo shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fencepost::cli {

struct Totals {
  std::int64_t processed = 0, skipped = 0, in_flight = 0, held = 0, lag = 0, commit_gap = 0,
               partitions = 0, contended = 0, expired = 0, fenced = 0, takeovers = 0,
               violations = 0;
  Totals& operator+=(const Totals& other);
};

// Nothing when the worker does not answer within 300 ms. One thread.
std::optional<Totals> Scrape(const std::string& url);

}  // namespace fencepost::cli
