// What the workers of a pipeline say of themselves, as rows. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "locking/base/error.h"

namespace fencepost::consumer {

// What one worker was asked, and the JSON of its /status (metrics/status/status_json.h), or why
// there is none.
struct FleetAnswer {
  std::string address;  // HOST:PORT; empty: it was not asked over HTTP
  std::string worker;   // as the group knows it; empty: nobody said
  tl::expected<std::string, std::string> status;
};

enum class FleetState : std::uint8_t {
  kSilent,  // it has not said anything of use
  kOther,   // it has no pipeline of this name
  kNotReady,
  kReady
};

using PartitionsByTopic = std::map<std::string, std::set<std::int32_t>>;

struct FleetRow {
  std::string worker;
  std::string address;
  std::string version;
  FleetState state = FleetState::kSilent;
  std::string trouble;  // why it is not ready, or silent; of a ready one what is to be known
  PartitionsByTopic partitions;
  std::int64_t lag = 0;          // records
  std::optional<double> oldest;  // seconds since its record's time
  double rate = 0;               // records a second
  // Since its start.
  std::int64_t contended = 0, expired = 0, lost = 0, letters = 0;
  [[nodiscard]] bool answered() const { return state >= FleetState::kNotReady; }
};
FleetRow RowOf(const FleetAnswer& answer, const std::string& pipeline);

struct Fleet {
  std::string pipeline;
  std::string group;
  std::vector<FleetRow> rows;    // by the workers' names
  std::optional<Error> problem;  // why its members are not known
  // Of the topics, the numbers of their partitions; or why they are not known.
  tl::expected<std::map<std::string, int>, std::string> topics;
};
// Sums, and partitions, of those that answered.
FleetRow TotalOf(const Fleet& fleet);
// Of the topics, those that no worker that answered has.
PartitionsByTopic WithoutAWorker(const Fleet& fleet);

// "0-3,7" of the numbers of partitions.
std::string RangesOf(const std::set<std::int32_t>& partitions);
// The same of each topic, whose name stands before it where there are `several`; empty: there are
// none.
std::string PartitionsText(const PartitionsByTopic& partitions, bool several);

}  // namespace fencepost::consumer
