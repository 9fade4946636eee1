#include "locking/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace fencepost {

void CheckFailed(const char* condition, const char* file, int line, std::string_view state) {
  std::fprintf(stderr, "fencepost: programming error at %s:%d: %s does not hold: %.*s\n", file,
               line, condition, static_cast<int>(state.size()), state.data());
  std::abort();
}

}  // namespace fencepost
