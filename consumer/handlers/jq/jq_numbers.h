// jq computes with doubles, and prints the shortest text that names the same double. A number that
// does not come out of that with the value it had must not go in. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace fencepost::consumer {

// The first number in a valid JSON text whose value a double, printed, does not have:
// 9007199254740993, 0.1234567890123456789, 1e999. Spelling does not matter: 1.50 and 15e-1 are 1.5.
std::optional<std::string_view> FindInexactNumber(std::string_view json);

}  // namespace fencepost::consumer
