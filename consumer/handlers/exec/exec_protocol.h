// What an exec handler and its processes say to each other: one JSON object a line, both ways. The
// format is documented in README.md. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

// The line for a call, newline included. Unexpected: the value is not JSON.
tl::expected<std::string, HandlerFailure> ExecRequestLine(const HandlerCall& call, ExecValue form);

// What a reply to the record with this id says. Unexpected: it is none, and why, in one line.
tl::expected<HandlerResult, std::string> ParseExecReply(std::string_view line,
                                                        std::string_view record_id);

}  // namespace fencepost::consumer
