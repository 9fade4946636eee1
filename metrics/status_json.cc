#include "metrics/status_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "metrics/log.h"

namespace fencepost::metrics {
namespace {

using consumer::WorkerStatus;
using nlohmann::ordered_json;

double InSeconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1e3; }

ordered_json PartitionJson(const consumer::PartitionStatus& status) {
  ordered_json json = {{"topic", status.topic},
                       {"partition", status.partition},
                       {"watermark", status.watermark},
                       {"end", status.end},
                       {"lag", status.lag},
                       {"in_flight", status.in_flight},
                       {"oldest_offset", nullptr},
                       {"paused", status.paused}};
  if (status.oldest_offset) json["oldest_offset"] = *status.oldest_offset;
  return json;
}

ordered_json NodeJson(const consumer::LockNodeStatus& status) {
  ordered_json json = {{"node", std::string(1, status.letter)},
                       {"address", status.address},
                       {"up", status.up},
                       {"open", status.open},
                       {"quarantined", status.quarantined},
                       {"quarantine_left_ms", status.quarantine_left.count()},
                       {"clock_offset_ms", nullptr},
                       {"problem", status.problem}};
  if (status.clock_offset) {
    json["clock_offset_ms"] = static_cast<double>(status.clock_offset->count()) / 1e6;
  }
  return json;
}

ordered_json ErrorJson(const consumer::ErrorStatus& error) {
  return {{"when", error.when.count()},
          {"time", Rfc3339(error.when)},
          {"event", error.event},
          {"text", error.text}};
}

template <typename Item, typename Function>
ordered_json ArrayOf(const std::vector<Item>& items, Function to_json) {
  ordered_json array = ordered_json::array();
  for (const Item& item : items) array.push_back(to_json(item));
  return array;
}

ordered_json PipelineJson(const WorkerStatus& status) {
  std::int64_t lag = 0;
  for (const auto& partition : status.partitions) lag += partition.lag;
  return {{"pipeline", status.pipeline},
          {"ready", status.ready},
          {"reason", status.reason},
          {"uptime_seconds", InSeconds(status.uptime)},
          {"lag", lag},
          {"leases_held", status.leases_held},
          {"in_flight", {{"records", status.in_flight_records}, {"bytes", status.in_flight_bytes}}},
          {"partitions", ArrayOf(status.partitions, PartitionJson)},
          {"nodes", ArrayOf(status.nodes, NodeJson)},
          {"last_errors", ArrayOf(status.last_errors, ErrorJson)}};
}

}  // namespace

std::string StatusJson(const std::vector<WorkerStatus>& pipelines) {
  ordered_json json = {{"worker", ""},
                       {"version", ""},
                       {"ready", !pipelines.empty()},
                       {"reason", pipelines.empty() ? "starting" : ""},
                       {"uptime_seconds", 0.0},
                       {"pipelines", ArrayOf(pipelines, PipelineJson)}};
  std::chrono::milliseconds uptime{0};
  for (const WorkerStatus& status : pipelines) {
    json["worker"] = status.worker;
    json["version"] = status.version;
    uptime = std::max(uptime, status.uptime);
    if (!status.ready && json["ready"] == true) {
      json["ready"] = false;
      json["reason"] = status.pipeline + ": " + status.reason;
    }
  }
  json["uptime_seconds"] = InSeconds(uptime);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace fencepost::metrics
