// jq computes with doubles, and prints the shortest text that names the same double. A number that
// does not come out of that with the value it had must have no part in a result. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fencepost::consumer {

// The numbers in a valid JSON text whose value a double, printed, does not have: 9007199254740993,
// 0.1234567890123456789, 1e999. Spelling does not matter: 1.50 and 15e-1 are 1.5.
std::vector<std::string_view> FindInexactNumbers(std::string_view json);

// `json` with the next double below or above in the place of each of `numbers`, which are parts of
// it. What a program makes of both and of `json` is the same where these numbers do not count.
enum class Nudge : signed char { kDown, kUp };
std::string Nudged(std::string_view json, const std::vector<std::string_view>& numbers,
                   Nudge nudge);

}  // namespace fencepost::consumer
