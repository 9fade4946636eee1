#include "consumer/cli/supervise/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "consumer/cli/supervise/channel.h"

namespace fencepost::cli {
namespace {

// Between fork and exec: other threads run, so nothing is allocated.
[[noreturn]] void BecomeChild(pid_t parent, int channel, char* const* argv) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // it died before we asked to be told
  fcntl(channel, F_SETFD, 0);
  sigset_t ends;  // of children: the supervisor's own business
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  sigprocmask(SIG_UNBLOCK, &ends, nullptr);
  execv("/proc/self/exe", argv);
  _exit(127);
}

}  // namespace

tl::expected<Child, std::string> StartChild(const std::vector<std::string>& arguments,
                                            const std::string& option) {
  try {
    SocketPair ends = MakeSocketPair();
    std::vector<std::string> words{"fencepost"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    words.push_back(option);
    words.push_back(std::to_string(ends.answering.get()));
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) BecomeChild(parent, ends.answering.get(), argv.data());
    if (pid < 0) return tl::unexpected(std::string("fork: ") + std::strerror(errno));
    return Child{pid, std::move(ends.asking)};
  } catch (const std::system_error& error) {
    return tl::unexpected(std::string(error.what()));
  }
}

}  // namespace fencepost::cli
