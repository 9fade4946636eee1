// `simulator_long_run FIRST COUNT [PROCESSES]`: the seeds FIRST to FIRST + COUNT - 1, in a process
// a core. The first that fails is told with its story and ends all; so does a process that a CHECK
// has ended. Then what all of them counted. Exit code 0: none has failed.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "tests/model/simulator/run_seed.h"

namespace fencepost::simulator {
namespace {

using Sums = std::map<std::string, std::int64_t>;

constexpr timespec kReport{.tv_sec = 60, .tv_nsec = 0};

// In memory that all processes share.
struct Shared {
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> passed{0};
  std::atomic<bool> failed{false};
};

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(2);
}

Shared& Share() {
  void* const at =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) Die("mmap");
  return *new (at) Shared;
}

void Write(const Sums& sums, std::FILE* to) {
  for (const auto& [what, count] : sums) {
    if (to == stdout && what.starts_with(kStruck)) continue;
    std::fputs(fmt::format("{} {}\n", count, what).c_str(), to);
  }
}

void AddWritten(std::FILE* from, Sums& sums) {
  std::rewind(from);
  long long count = 0;
  char what[256];
  while (std::fscanf(from, "%lld %255[^\n]\n", &count, what) == 2) sums[what] += count;
}

// One process: takes the next seed until there is none, and writes what it counted.
int Work(Shared& shared, std::uint64_t first, std::uint64_t count, std::FILE* to) {
  Sums sums;
  while (!shared.failed) {
    const std::uint64_t at = shared.next.fetch_add(1);
    if (at >= count) break;
    Counts counts;
    if (const auto failure = RunSeed(first + at, &counts)) {
      shared.failed = true;
      std::printf("%s\n", failure->c_str());
      return 1;
    }
    for (const auto& [what, times] : counts) sums[what] += times;
    ++shared.passed;
  }
  Write(sums, to);
  return 0;
}

std::map<pid_t, std::FILE*> Fork(unsigned processes, Shared& shared, std::uint64_t first,
                                 std::uint64_t count) {
  std::map<pid_t, std::FILE*> children;
  for (unsigned i = 0; i < processes; ++i) {
    std::FILE* const counts = std::tmpfile();
    if (counts == nullptr) Die("tmpfile");
    const pid_t child = fork();
    if (child < 0) Die("fork");
    if (child == 0) {
      const int code = Work(shared, first, count, counts);
      std::fflush(nullptr);
      _exit(code);
    }
    children[child] = counts;
  }
  return children;
}

// In seconds, of those that have been waited for.
double ProcessorTimeOfChildren() {
  rusage used{};
  if (getrusage(RUSAGE_CHILDREN, &used) != 0) Die("getrusage");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

int Run(std::uint64_t first, std::uint64_t count, unsigned processes) {
  Shared& shared = Share();
  const auto tell = [&](const std::string& more) {
    std::puts(fmt::format("{} of {} seeds passed{}", shared.passed.load(), count, more).c_str());
    std::fflush(stdout);
  };
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  auto children = Fork(processes, shared, first, count);
  Sums sums;
  while (!children.empty()) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    if (child <= 0) {
      if (sigtimedwait(&ends, nullptr, &kReport) < 0) tell("");
      continue;
    }
    if (status != 0) shared.failed = true;
    AddWritten(children.at(child), sums);
    children.erase(child);
  }
  const double seconds = ProcessorTimeOfChildren();
  tell(fmt::format(" in {:.1f} s of processor time, {:.0f} a second", seconds,
                   static_cast<double>(shared.passed) / std::max(seconds, 0.001)));
  Write(sums, stdout);
  if (!shared.failed) std::puts(Table(sums).c_str());
  return shared.failed ? 1 : 0;
}

}  // namespace
}  // namespace fencepost::simulator

int main(int argc, char** argv) {
  const auto number = [&](int at) { return std::strtoull(argv[at], nullptr, 10); };
  if (argc < 3 || argc > 4 || number(1) == 0 || number(2) == 0) {
    std::fprintf(stderr, "usage: simulator_long_run FIRST COUNT [PROCESSES]\n");
    return 2;
  }
  const auto processes = argc == 4 ? static_cast<unsigned>(number(3))
                                   : std::max(1U, std::thread::hardware_concurrency());
  return fencepost::simulator::Run(number(1), number(2), processes);
}
