// The classes of handler errors, as `success`, `retry_on` and `never` name them. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost::consumer {

// A word ("timeout", "connection", "exec", …), an HTTP status ("404") or a hundred of them ("4xx").
using ErrorClass = std::string;

// Whether `patterns` name this class, and how: exactly, by a hundred ("4xx"), or not.
enum class ClassMatch : std::uint8_t { kNone, kStatusClass, kExact };
ClassMatch MatchClass(const std::vector<ErrorClass>& patterns, std::string_view error_class);

}  // namespace fencepost::consumer
