// /fleet: the workers of each pipeline of this process, as a page in the manner of the status page,
// and as JSON. Pure; any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "consumer/fleet/fleet.h"

namespace fencepost::metrics {

struct ShownFleet {
  std::string worker, version;       // of who has asked the others
  std::chrono::milliseconds now{0};  // unix time
  std::vector<consumer::Fleet> fleets;
};

std::string FleetPage(const ShownFleet& shown);
// The content of its <main>, at /fleet-fragment.
std::string FleetFragment(const ShownFleet& shown);

// {"worker", "version", "pipelines": [{"pipeline", "group", "problem": why its workers are not
//  known, or null, "workers": [{"worker", "address", "state": "ready" | "not ready" | "no answer" |
//  "other pipelines", "trouble", "version", "lag", "oldest_age_seconds": or null,
//  "records_per_second", "counts": {"lock_contended", "lock_expired", "lock_losses",
//  "dead_lettered"}, "partitions": {TOPIC: [0, 1]}}], "without_worker": {TOPIC: [2]}, or null where
//  it is not known}]}. What comes after "version" is of those that answered.
std::string FleetJson(const ShownFleet& shown);

}  // namespace fencepost::metrics
