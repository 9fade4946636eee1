// The state of a worker, for people: one pipeline of one worker at one moment. Plain values, filled
// by the engine thread and shown at /status (metrics/status/status_json.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "consumer/pipeline/readiness.h"
#include "consumer/record/record.h"
#include "locking/core/observer.h"
#include "locking/redis/node_unavailable.h"

namespace fencepost::consumer {

struct PartitionStatus {
  std::string topic;
  std::int32_t partition = 0;
  Offset watermark = 0;  // everything before it is finished
  Offset end = 0;        // as last heard from the broker
  std::int64_t lag = 0;  // records from the watermark to the end
  std::size_t in_flight = 0;
  std::optional<Offset> oldest_offset;  // of the oldest unfinished record
  bool paused = false;
  std::string oldest_stage;                             // what it waits for; empty: none
  std::chrono::milliseconds oldest_for{0};              // since it has been the oldest
  std::size_t finished_behind = 0;                      // finished records that wait for it
  std::optional<std::chrono::milliseconds> oldest_age;  // since its Kafka timestamp
};

struct LockNodeStatus {
  char letter = 'a';    // as in the metrics: by the place in the list
  std::string address;  // as configured; never with credentials
  bool up = false;
  bool open = false;         // takes part: connected, a member of the store, no problem
  bool quarantined = false;  // takes part, but its grants do not count yet
  std::chrono::milliseconds quarantine_left{0};
  std::optional<std::chrono::nanoseconds> clock_offset;  // node wall - own wall
  std::string problem;                                   // one line; empty when there is none
  locking::UnavailableReason away =
      locking::UnavailableReason::kNotYet;  // of one that is not up: the problem
};

// An error or a warning of the log, with what repeated it.
struct ErrorStatus {
  std::chrono::milliseconds when{0};  // unix time of the last one
  std::string event;
  std::string text;  // of the last one
  locking::Severity level = locking::Severity::kError;
  std::uint64_t count = 1;
  std::chrono::milliseconds first{0};  // unix time of the first one
};

struct WorkerStatus {
  std::string pipeline;
  std::string worker;
  std::string version;
  bool ready = false;
  std::string reason;  // why not ready: those of `reasons` that say so, by "; "; empty when ready
  std::vector<Reason> reasons;  // all that is in the way now, and remarks; the gravest first
  std::chrono::milliseconds uptime{0};
  std::vector<PartitionStatus> partitions;
  std::size_t in_flight_records = 0;
  std::size_t in_flight_bytes = 0;
  std::size_t leases_held = 0;
  std::vector<LockNodeStatus> nodes;
  std::vector<ErrorStatus> last_errors;  // oldest first, at most 20 of each level
};

}  // namespace fencepost::consumer
