// What the commands share: exit codes, and how a command is registered with the command line.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "locking/base/error.h"

namespace CLI {
class App;
}

namespace fencepost::cli {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,  // it failed while running
  kUsage = 2,   // the command line or a file is wrong; nothing was started
  // lock exec; else the command's own.
  kNoQuorum = 69,
  kContended = 75,        // until --wait ran out
  kLockLost = 76,         // and the command was stopped
  kNotExecutable = 126,   // as a shell has it
  kCommandNotFound = 127  // likewise
};

// Each adds its subcommand to `app`; when that is chosen, `run` is set to what carries it out.
using Run = std::function<int()>;
void AddRun(CLI::App& app, Run& run);
void AddLint(CLI::App& app, Run& run);
void AddLocks(CLI::App& app, Run& run);
// `command_words`: what is behind -- on the command line; read when the command is chosen.
void AddLock(CLI::App& app, Run& run, const std::vector<std::string>& command_words);
void AddDev(CLI::App& app, Run& run);
void AddDemo(CLI::App& app, Run& run);
void AddBench(CLI::App& app, Run& run);
void AddTest(CLI::App& app, Run& run);
void AddCreate(CLI::App& app, Run& run);
void AddExplain(CLI::App& app, Run& run);
void AddDlq(CLI::App& app, Run& run);
void AddForget(CLI::App& app, Run& run);
void AddTables(CLI::App& app, Run& run);
void AddTop(CLI::App& app, Run& run);
void AddHealth(CLI::App& app, Run& run);
void AddCompletion(CLI::App& app, Run& run);
// All of them, `schema` and `version` (commands.cc).
void AddCommands(CLI::App& app, Run& run, const std::vector<std::string>& command_words);

// One line to stderr.
inline void PrintError(const std::string& line) {
  std::fprintf(stderr, "fencepost: %s\n", line.c_str());
}
// That line, and the exit code that goes with it.
inline int ExitFailed(const std::string& line) { return PrintError(line), kFailed; }
inline int ExitFailed(const Error& error) { return ExitFailed(error.Line()); }
inline int ExitUsage(const std::string& line) { return PrintError(line), kUsage; }
inline int ExitUsage(const Error& error) { return ExitUsage(error.Line()); }
// Where `lock exec` did not have the lock: by the code of the error alone (quorum_lock.h lists
// them). What the command line asks and no node would ever grant is a usage error; a clock that the
// nodes do not accept is for want of a quorum.
inline int ExitFor(const Error& error) {
  if (error.code == "contended") return kContended;
  if (error.code == "bad_options" || error.code == "refused") return kUsage;
  return error.code == "no_thread" ? kFailed : kNoQuorum;
}

// An option that is given as an empty text counts as one that is not: the environment's is taken.
inline void TakeFromEnvironment(std::string& option, const char* variable) {
  const char* const value = std::getenv(variable);
  if (option.empty() && value != nullptr) option = value;
}

std::string Version();
std::string Commit();

}  // namespace fencepost::cli
