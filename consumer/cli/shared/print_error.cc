#include <cstdio>

#include "consumer/cli/shared/command.h"

namespace fencepost::cli {

void PrintError(const std::string& line) { std::fprintf(stderr, "fencepost: %s\n", line.c_str()); }

}  // namespace fencepost::cli
