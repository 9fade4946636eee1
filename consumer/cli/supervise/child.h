// Starts a process of `run --processes`: this very program again, as it is, with other arguments.
// It gets SIGTERM when the process that called this dies, however: it drains then. Call this from
// the main thread: the kernel ties that signal to the thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "locking/base/fd.h"

namespace fencepost::cli {

struct Child {
  pid_t pid = -1;
  Fd asking;  // see channel.h
};

// `arguments`, behind the program's name; `option` and a descriptor are added: the other end of
// `asking`. stdin, stdout, stderr, environment and signal mask are ours, but for SIGCHLD. Error:
// the system's words.
tl::expected<Child, std::string> StartChild(const std::vector<std::string>& arguments,
                                            const std::string& option);

}  // namespace fencepost::cli
