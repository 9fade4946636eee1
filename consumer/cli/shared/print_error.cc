#include <cstdio>

#include "consumer/cli/shared/command.h"

namespace fencepost::cli {

void PrintError(const std::string& line) { std::fprintf(stderr, "fencepost: %s\n", line.c_str()); }

int ExitFailed(const std::string& line) {
  PrintError(line);
  return kFailed;
}
int ExitFailed(const Error& error) { return ExitFailed(error.Line()); }

int ExitUsage(const std::string& line) {
  PrintError(line);
  return kUsage;
}
int ExitUsage(const Error& error) { return ExitUsage(error.Line()); }

}  // namespace fencepost::cli
