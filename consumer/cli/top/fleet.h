// What the workers of a pipeline say of themselves, as a table. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/record/record.h"

namespace fencepost::cli {

// What one worker was asked, and the JSON of its /status (metrics/status/status_json.h), or why
// there is none.
struct FleetAnswer {
  std::string address;  // HOST:PORT
  std::string client;   // as the group knows it; empty: nobody said
  tl::expected<std::string, std::string> status;
};

struct FleetRow {
  std::string worker;
  std::string version;
  std::string trouble;  // why it is not ready, or has not answered; empty: it is well
  bool answered = false;
  std::map<std::string, std::set<std::int32_t>> partitions;  // by topic
  std::int64_t lag = 0;                                      // records
  std::optional<double> oldest;                              // seconds since its record's time
  double rate = 0;                                           // records a second
  std::int64_t contended = 0, lost = 0, letters = 0;         // since its start
};
FleetRow RowOf(const FleetAnswer& answer, const std::string& pipeline);

struct Fleet {
  std::string pipeline;
  std::string group;
  std::vector<FleetRow> rows;
  std::optional<std::map<std::string, int>> topics;  // their partitions; nullopt: not known
};
// A line a worker, sorted by name, then the totals, the partitions that no worker has, and what
// troubles whom. A line has `width` columns at most.
std::vector<std::string> LinesOf(Fleet fleet, std::size_t width);

// "0-3,7" of the numbers of partitions.
std::string RangesOf(const std::set<std::int32_t>& partitions);

}  // namespace fencepost::cli
