// /status: the state of the process's pipelines, as one JSON object. Pure.
#pragma once

#include <string>

#include "metrics/status/shown_pipeline.h"

namespace fencepost::metrics {

// {"worker", "version", "ready", "reason", "reasons": [...], "uptime_seconds", "pipelines":
//  [{"pipeline", "ready", "reason", "reasons": [...], "uptime_seconds", "lag", "leases_held",
//  "in_flight": {"records", "bytes"}, "records_per_second", "counts": {...}, "partitions": [...],
//  "nodes": [...], "last_errors": [...], "settings": {...}}]}. Bytes that are not UTF-8 are
//  replaced.
std::string StatusJson(const ShownProcess& process);

}  // namespace fencepost::metrics
