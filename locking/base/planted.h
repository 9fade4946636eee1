// Named points at which a test build can plant a bug (tests/model/planted), to see that a test
// finds it. Everywhere else a point is the constant false, and no code is left of it. Only in .cc
// files: the programs with bugs compile those files again.
#pragma once

#include <string_view>

namespace fencepost {

#ifdef FENCEPOST_PLANTED_BUGS
bool Planted(std::string_view name);  // whether this is the bug that the program was started with
#else
constexpr bool Planted(std::string_view /*name*/) { return false; }
#endif

}  // namespace fencepost
