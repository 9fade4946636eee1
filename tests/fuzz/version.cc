// What main.cc, which is not linked, has for the commands.
#include "consumer/cli/shared/command.h"

namespace fencepost::cli {

std::string Version() { return "0"; }
std::string Commit() { return "0"; }

}  // namespace fencepost::cli
