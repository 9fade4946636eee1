// Where things are: this source tree, the build folder, the programs under test. Absolute paths.
#pragma once

#include <string>
#include <string_view>

namespace fencepost::testing {

// A file of the source tree by its path in it; the tree itself without one.
std::string SourcePath(std::string_view path = {});
// The same of the build folder.
std::string BuildPath(std::string_view path = {});
std::string FencepostBinary();
// A library that shifts the clock of a process into which it is preloaded.
std::string ClockShim();
// The compiler's options of a build under sanitizers; empty in others.
std::string SanitizeFlags();

}  // namespace fencepost::testing
