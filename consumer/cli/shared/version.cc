#include "consumer/cli/shared/command.h"

#ifndef FENCEPOST_VERSION
#error "FENCEPOST_VERSION comes from CMake"
#endif

namespace fencepost::cli {

std::string Version() { return FENCEPOST_VERSION; }
std::string Commit() { return FENCEPOST_COMMIT; }

}  // namespace fencepost::cli
