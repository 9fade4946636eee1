#include "metrics/status/status_json.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "locking/base/time_text.h"
#include "metrics/log/log.h"
#include "metrics/status/html.h"

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
  if (status.oldest_offset) {
    json["oldest_offset"] = *status.oldest_offset;
    json["oldest_stage"] = status.oldest_stage;
    json["oldest_for_seconds"] = InSeconds(status.oldest_for);
    json["finished_behind"] = status.finished_behind;
    json["waits_for"] = fmt::format(
        "{}: {}", consumer::SourceText({status.topic, status.partition}, *status.oldest_offset),
        OldestText(status));
    if (status.oldest_age) json["oldest_age_seconds"] = InSeconds(*status.oldest_age);
  }
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
          {"level", SeverityName(error.level)},
          {"event", error.event},
          {"text", error.text},
          {"count", error.count},
          {"first_time", Rfc3339(error.count > 1 ? error.first : error.when)}};
}

template <typename Item, typename Function>
ordered_json ArrayOf(const std::vector<Item>& items, Function to_json) {
  ordered_json array = ordered_json::array();
  for (const Item& item : items) array.push_back(to_json(item));
  return array;
}

ordered_json CountsJson(const Counts& counts) {
  ordered_json json;
  for (const Counts::Row& row : Counts::Rows()) {
    json[ordered_json::json_pointer(fmt::format("/{}", row.name))] = counts[row.name];
  }
  return json;
}

ordered_json PipelineJson(const ShownPipeline& shown) {
  const WorkerStatus& status = shown.status;
  ordered_json settings = ordered_json::object();
  for (const auto& [path, text] : shown.settings) settings[path] = text;
  return {{"pipeline", status.pipeline},
          {"ready", status.ready},
          {"reason", status.reason},
          {"reasons", ArrayOf(status.reasons, consumer::Sentence)},
          {"uptime_seconds", InSeconds(status.uptime)},
          {"lag", LagOf(shown)},
          {"leases_held", status.leases_held},
          {"in_flight", {{"records", status.in_flight_records}, {"bytes", status.in_flight_bytes}}},
          {"records_per_second", shown.rate},
          {"counts", CountsJson(shown.counts)},
          {"partitions", ArrayOf(status.partitions, PartitionJson)},
          {"nodes", ArrayOf(status.nodes, NodeJson)},
          {"last_errors", ArrayOf(status.last_errors, ErrorJson)},
          {"settings", std::move(settings)}};
}

}  // namespace

std::string StatusJson(const ShownProcess& process) {
  const ProbeResult ready = ReadyOf(process);
  std::chrono::milliseconds uptime{0};
  for (const auto& shown : process.pipelines) uptime = std::max(uptime, shown.status.uptime);
  ordered_json libraries = ordered_json::object();
  for (const auto& [name, version] : process.libraries) libraries[name] = version;
  const ordered_json json = {{"worker", process.worker},
                             {"version", process.version},
                             {"libraries", std::move(libraries)},
                             {"ready", ready.ready},
                             {"reason", ready.reason},
                             {"reasons", ReasonsOf(process)},
                             {"uptime_seconds", InSeconds(uptime)},
                             {"pipelines", ArrayOf(process.pipelines, PipelineJson)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace fencepost::metrics
