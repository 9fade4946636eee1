#include "tests/support/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <mutex>
#include <queue>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

extern char** environ;

namespace fencepost::testing {
namespace {

[[noreturn]] void Fail(const std::string& what) { throw std::runtime_error(what); }

// PR_SET_PDEATHSIG fires when the *thread* that forked ends. All children are therefore forked by
// one thread that lives as long as the program, whichever thread of the test asks.
class Spawner {
 public:
  static Spawner& Instance() {
    static auto* spawner = new Spawner;
    return *spawner;
  }
  pid_t Spawn(std::function<pid_t()> work) {
    std::packaged_task<pid_t()> task(std::move(work));
    std::future<pid_t> pid = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push(std::move(task));
    }
    wake_.notify_one();
    return pid.get();
  }

 private:
  Spawner() {
    std::thread([this] {
      while (true) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return !tasks_.empty(); });
        std::packaged_task<pid_t()> task = std::move(tasks_.front());
        tasks_.pop();
        lock.unlock();
        task();
      }
    }).detach();
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::queue<std::packaged_task<pid_t()>> tasks_;
};

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  bool change = false;
};

Account FindAccount(const std::string& user) {
  if (user.empty() || geteuid() != 0) return {};
  const passwd* entry = getpwnam(user.c_str());
  if (entry == nullptr) Fail("no such user: " + user);
  return {entry->pw_uid, entry->pw_gid, true};
}

// All that the child does between fork and exec, and all it needs: nothing may be allocated there.
struct Plan {
  std::vector<char*> argv;
  std::vector<char*> envp;
  const char* directory = nullptr;
  Account account;
  int in = -1;
  int out = -1;
  int err = -1;
  int report = -1;  // errno of what failed
  pid_t parent = 0;
};

[[noreturn]] void BecomeChild(const Plan& plan) {
  const auto give_up = [&plan] {
    const int error = errno;
    if (write(plan.report, &error, sizeof(error)) < 0) _exit(126);
    _exit(127);
  };
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  if (plan.account.change && (setgid(plan.account.gid) != 0 || setuid(plan.account.uid) != 0))
    give_up();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up();  // after setuid, which clears it
  if (getppid() != plan.parent) _exit(127);
  if (plan.directory != nullptr && chdir(plan.directory) != 0) give_up();
  if (dup2(plan.in, 0) < 0 || dup2(plan.out, 1) < 0 || dup2(plan.err, 2) < 0) give_up();
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  execvpe(plan.argv[0], plan.argv.data(), plan.envp.data());
  give_up();
  _exit(127);
}

int OpenOrFail(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) Fail(fmt::format("{}: {}", path, std::strerror(errno)));
  return fd;
}

bool Bindable(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return free;
}

// An abstract Unix socket of that number says "taken" to the other test programs, and goes with us.
bool Reserve(int port) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("fencepost-test-port-{}", port);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return true;
  close(fd);
  return false;
}

}  // namespace

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "fencepost-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) Fail(fmt::format("{}: {}", name, std::strerror(errno)));
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Write(std::string_view name, std::string_view text) const {
  std::string path = File(name);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) Fail("cannot write " + path);
  return path;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int FreePort() {
  int ephemeral = 32768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> ephemeral;
  constexpr int kLowest = 10000;
  std::random_device random;
  std::uniform_int_distribution<int> any(kLowest, std::max(ephemeral, kLowest + 1000) - 1);
  for (int tries = 0; tries < 1000; ++tries) {
    const int port = any(random);
    if (Bindable(port) && Reserve(port)) return port;
  }
  Fail("no free port found");
}

std::filesystem::path CacheDir() {
  if (const char* cache = std::getenv("FENCEPOST_CACHE"); cache != nullptr && *cache != 0)
    return cache;
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "/tmp" : home) / ".cache/fencepost";
}

::testing::AssertionResult WaitUntil(Deadline limit, std::string_view what,
                                     const std::function<bool()>& condition) {
  limit *= kPatience;
  const auto end = std::chrono::steady_clock::now() + limit;
  std::chrono::milliseconds nap{1};
  while (true) {
    const bool last = std::chrono::steady_clock::now() >= end;
    if (condition()) return ::testing::AssertionSuccess();
    if (last) break;
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, std::chrono::milliseconds{20});
  }
  return ::testing::AssertionFailure() << "waited " << limit.count() << " ms in vain for " << what;
}

::testing::AssertionResult WaitUntil(Deadline limit, const std::function<bool()>& condition,
                                     std::string_view what) {
  return WaitUntil(limit, what, condition);
}

void RequireWithin(Deadline limit, std::string_view what, const std::function<bool()>& condition) {
  const auto result = WaitUntil(limit, what, condition);
  if (!result) Fail(result.message());
}

void RequireWithin(Deadline limit, const std::function<bool()>& condition, std::string_view what) {
  RequireWithin(limit, what, condition);
}

Process::Process(ProcessOptions options) {
  if (options.argv.empty()) Fail("Process: no command");
  name_ = options.argv[0];
  logs_.Write("stdin", options.stdin_text);

  std::map<std::string, std::string> env = options.env;
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    if (!env.contains(std::string(line.substr(0, line.find('='))))) environment.emplace_back(line);
  }
  for (const auto& [key, value] : env) environment.push_back(key + "=" + value);

  Plan plan;
  for (std::string& word : options.argv) plan.argv.push_back(word.data());
  for (std::string& line : environment) plan.envp.push_back(line.data());
  plan.argv.push_back(nullptr);
  plan.envp.push_back(nullptr);
  if (!options.directory.empty()) plan.directory = options.directory.c_str();
  plan.account = FindAccount(options.user);
  plan.parent = getpid();
  plan.in = OpenOrFail(logs_.File("stdin"), O_RDONLY);
  plan.out = OpenOrFail(logs_.File("stdout"), O_WRONLY | O_CREAT | O_APPEND);
  plan.err = options.separate_stderr
                 ? OpenOrFail(logs_.File("stderr"), O_WRONLY | O_CREAT | O_APPEND)
                 : plan.out;
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) Fail("pipe2");
  plan.report = report[1];

  pid_ = Spawner::Instance().Spawn([&plan] {
    const pid_t pid = fork();
    if (pid == 0) BecomeChild(plan);
    return pid;
  });
  const int fork_error = errno;
  close(report[1]);
  close(plan.in);
  close(plan.out);
  if (plan.err != plan.out) close(plan.err);
  int error = 0;
  const bool failed = read(report[0], &error, sizeof(error)) == sizeof(error);
  close(report[0]);
  if (pid_ < 0) Fail(fmt::format("fork: {}", std::strerror(fork_error)));
  if (failed) {
    waitpid(pid_, nullptr, 0);
    Fail(fmt::format("cannot start {}: {}", name_, std::strerror(error)));
  }
}

Process::~Process() {
  if (!Running()) return;
  killpg(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Process::Running() { return !Wait(Deadline{0}).has_value(); }

void Process::Kill(int sig) {
  if (!Running()) return;
  kill(pid_, sig);
  // Its threads run on until each is scheduled once more: what must not happen meanwhile could.
  siginfo_t stopped{};
  if (sig == SIGSTOP) {
    waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WEXITED | WNOWAIT);
  }
}

std::optional<int> Process::Wait(Deadline limit) {
  if (exit_code_) return exit_code_;
  (void)WaitUntil(limit, [this] {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  });
  return exit_code_;
}

std::string Process::Output() const { return ReadFile(logs_.File("stdout")); }
std::string Process::ErrorOutput() const { return ReadFile(logs_.File("stderr")); }

Finished RunToEnd(ProcessOptions options, Deadline limit) {
  const std::string name = options.argv.empty() ? "" : options.argv[0];
  Process process(std::move(options));
  const std::optional<int> code = process.Wait(limit);
  if (!code) {
    Fail(fmt::format("{} did not end within {} ms; it printed:\n{}{}", name, limit.count(),
                     process.Output(), process.ErrorOutput()));
  }
  return {*code, process.Output(), process.ErrorOutput()};
}

}  // namespace fencepost::testing
