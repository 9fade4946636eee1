// What an exec handler and its processes say to each other: one JSON object a line, both ways. The
// format is documented in README.md. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

// The request for a call, without a newline. Unexpected: the value is not JSON.
tl::expected<std::string, HandlerFailure> ExecRequest(const HandlerCall& call, ExecValue form);
// The line for one or several requests, newline included.
std::string ExecLine(std::span<const std::string> requests, bool batch);

// {"heartbeat": true} and nothing else: the call goes on, and its timeout starts anew.
bool IsExecHeartbeat(std::string_view line);

// What a reply to the record with this id says. Unexpected: it is none, and why, in one line.
tl::expected<HandlerResult, std::string> ParseExecReply(std::string_view line,
                                                        std::string_view record_id);

// What the reply to a batch says of each of these ids, in their order. Those that it says nothing
// of have failed. Unexpected: it is none (an id twice, or another batch's).
tl::expected<std::vector<HandlerResult>, std::string> ParseExecBatch(
    std::string_view line, std::span<const std::string_view> record_ids);

}  // namespace fencepost::consumer
