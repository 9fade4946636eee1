// What is done to a record before it is written: the interface of handlers in C++, and the words
// that all handlers share. A program of your own makes a Handler, puts it into
// PipelineOptions::handler (CustomHandlerOptions) and runs a Worker; see examples/.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/flow/ports/ports.h"
#include "consumer/record/record.h"

namespace fencepost::consumer {

// One call of a handler: the record, who it is, and under which fencing token it is worked on. The
// same record may come again (a crash, a lost lease): with the same record_id, and a higher token.
// Views stay good until the call has been answered.
struct HandlerRequest {
  const Record* record = nullptr;
  const TopicPartition* where = nullptr;
  std::string_view record_id;
  std::uint64_t token = 0;
  int attempt = 1;                      // from 1; those of earlier owners count
  std::chrono::milliseconds timeout{};  // of this call
};

// `record`: the call's own, or one in its place.
inline HandlerRequest RequestOf(const HandlerCall& call, const Record& record) {
  return {.record = &record,
          .where = &call.where,
          .record_id = call.record_id,
          .token = call.token,
          .attempt = call.attempt,
          .timeout = call.timeout};
}

// One thread calls one Handler, a record at a time. It must end soon after `stop` is requested
// (the timeout, a lost lease, shutdown); what it answers then does not count. It must not throw.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual HandlerResult Handle(const HandlerRequest& request, const std::stop_token& stop) = 0;
};

}  // namespace fencepost::consumer
