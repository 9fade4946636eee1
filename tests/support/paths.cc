#include "tests/support/paths.h"

namespace fencepost::testing {
namespace {

std::string Under(std::string folder, std::string_view path) {
  if (!path.empty()) folder.append("/").append(path);
  return folder;
}

}  // namespace

std::string SourcePath(std::string_view path) { return Under(SOURCE_DIR, path); }
std::string BuildPath(std::string_view path) { return Under(BINARY_DIR, path); }
std::string FencepostBinary() { return FENCEPOST_BINARY; }
std::string ClockShim() { return CLOCK_SHIM; }
std::string SanitizeFlags() { return SANITIZE_FLAGS; }

}  // namespace fencepost::testing
