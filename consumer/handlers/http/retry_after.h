// What an HTTP service's Retry-After header says. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// How long to wait from `now` (unix time), never less than nothing: `text` is a number of seconds
// or a date as in HTTP ("Wed, 21 Oct 2015 07:28:00 GMT"). nullopt: it is neither.
std::optional<Millis> ParseRetryAfter(const std::string& text, Millis now);

}  // namespace fencepost::consumer
