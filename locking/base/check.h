// An always-on check for programming errors. Never for input, peers or outages: those are Error
// values.
#pragma once

#include <string_view>

namespace fencepost {

// Prints the failed condition, where, and the state, to stderr; then aborts. Any thread.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line,
                              std::string_view state);

}  // namespace fencepost

// FENCEPOST_CHECK(cond, state): `state` is a std::string_view expression, evaluated only on
// failure.
#define FENCEPOST_CHECK(condition, state)                                \
  do {                                                                   \
    if (!(condition)) [[unlikely]] {                                     \
      ::fencepost::CheckFailed(#condition, __FILE__, __LINE__, (state)); \
    }                                                                    \
  } while (false)
