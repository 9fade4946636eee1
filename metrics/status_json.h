// /status: how the process's pipelines stand, as one JSON object. Pure.
#pragma once

#include <string>
#include <vector>

#include "consumer/status.h"

namespace fencepost::metrics {

// {"worker", "version", "ready", "reason", "uptime_seconds", "pipelines": [{"pipeline", "ready",
//  "reason", "uptime_seconds", "lag", "leases_held", "in_flight": {"records", "bytes"},
//  "partitions": [...], "nodes": [...], "last_errors": [...]}]}. Bytes that are not UTF-8 are
//  replaced.
std::string StatusJson(const std::vector<consumer::WorkerStatus>& pipelines);

}  // namespace fencepost::metrics
