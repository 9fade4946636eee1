// The classes of handler errors, as `success`, `retry_on` and `never` name them. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost::consumer {

// A word ("timeout", "connection", "exec", …), an HTTP status ("404") or a hundred of them ("4xx").
using ErrorClass = std::string;

// An answer about the caller (its credentials, the address, the method, the protocol) that a
// service or a proxy before it gives to every call: never the fault of one record (RFC 9110, 15.4
// and 15.5).
bool IsAboutTheCaller(std::string_view error_class);

// Whether `patterns` name this class, and how: exactly, by a hundred ("4xx"), or not.
enum class ClassMatch : std::uint8_t { kNone, kStatusClass, kExact };
ClassMatch MatchClass(const std::vector<ErrorClass>& patterns, std::string_view error_class);

}  // namespace fencepost::consumer
