#include "tests/fault/matrix/soak.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/fault/matrix/faults.h"

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr seconds kEndLimit{180};
constexpr double kMiB = 1 << 20;
constexpr std::size_t kThird = 5;  // samples of a third, at least

// A step that does not come again: what an outage needed for the first time, and is kept. The
// allocator keeps pages for as many records as were ever in flight at a time; a pool opens one more
// thread or connection. In ten minutes of faults the memory of a worker moved by 1 MiB after
// warming up, and its threads not at all.
double Step(const std::string& what) {
  if (what.starts_with("MiB")) return 4;
  return what.starts_with("keys") ? 0 : 2;
}

// A line of /proc/PID/status: "Threads:", "VmRSS:" (in KiB).
double StatusOf(pid_t pid, const std::string& name) {
  const std::string text = testing::ReadFile(fmt::format("/proc/{}/status", pid));
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size()));
}

double Descriptors(pid_t pid) {
  std::error_code ignored;
  const std::filesystem::directory_iterator entries(fmt::format("/proc/{}/fd", pid), ignored);
  return static_cast<double>(std::distance(begin(entries), end(entries)));
}

Sample Look(System& system, Trial& trial) {
  Sample sample;
  for (testing::WorkerProcess* worker : trial.team().Running()) {
    const pid_t pid = worker->pid();
    sample["MiB of " + worker->name()] = StatusOf(pid, "VmRSS:") * 1024 / kMiB;
    sample["threads of " + worker->name()] = StatusOf(pid, "Threads:");
    sample["descriptors of " + worker->name()] = Descriptors(pid);
  }
  for (std::size_t i = 0; i < system.nodes(); ++i) {
    sample[fmt::format("keys on node {}", i)] =
        std::strtod(system.node(i).Command({"DBSIZE"}).c_str(), nullptr);
  }
  return sample;
}

// Faults that a system gets over within moments, and that a worker may live through: what a worker
// has gathered is lost with it, so nobody is killed in a measurement of growth.
bool Suits(const Fault& fault, DatabaseKind database) {
  if (fault.database.value_or(database) != database || fault.replica || fault.small_disk ||
      !fault.Suits(Pipeline::kId) || fault.name.ends_with("-ledger-rows-dropped")) {
    return false;
  }
  static const std::vector<std::string> kOthers = {
      "worker-kill",      "worker-rolling", "worker-joins", "kafka-offsets",    "kafka-truncated",
      "kafka-partitions", "exec-",          "http-huge",    "nodes-all-flushed"};
  return std::none_of(kOthers.begin(), kOthers.end(),
                      [&](const std::string& other) { return fault.name.starts_with(other); });
}

// What a value comes back to: a quarter of the samples are no higher. What is needed for the
// backlog of an outage, and then given back, is not growth, were it for most of the time; a
// leak raises what is left as well.
double Floor(std::vector<double> values) {
  const auto quarter = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), quarter, values.end());
  return *quarter;
}

class Soak {
 public:
  explicit Soak(const SoakOptions& options)
      : options_(options),
        random_(options.seed),
        made_(Ready(system_)),
        trial_(system_, {.name = fmt::format("soak-{}", options.seed),
                         .seed = options.seed,
                         .workers = 3,
                         .database = options.database,
                         .records_a_second = options.records_a_second}) {
    for (const Fault& fault : AllFaults()) {
      if (Suits(fault, options.database)) faults_.push_back(&fault);
    }
  }
  int Run();

 private:
  static bool Ready(System& system) { return system.Reset(5), true; }
  void Disturb();
  void Tell(const Sample& sample);

  const SoakOptions options_;
  std::mt19937_64 random_;
  System system_;
  bool made_;
  Trial trial_;
  std::vector<const Fault*> faults_;
  std::map<std::string, int> counts_;
  std::vector<Sample> samples_;
  Clock::time_point next_sample_ = Clock::now();
};

void Soak::Disturb() {
  const Fault& fault = *faults_.at(random_() % faults_.size());
  Scene scene{.system = system_,
              .trial = trial_,
              .worker = nullptr,
              .node = -1,
              .random = std::mt19937_64(random_())};
  std::printf("%s\n", fault.name.c_str());
  fault.begin(scene);
  (void)trial_.FeedUntil(fault.lasts, [] { return false; });
  scene.undo.Now();
  ++counts_["faults"];
  for (const auto& [what, count] : scene.counts) counts_[what] += count;
  const milliseconds calm(2000 + random_() % 8000);
  (void)trial_.FeedUntil(calm, [] { return false; });
}

void Soak::Tell(const Sample& sample) {
  std::string line = fmt::format("{} records, {} effects, {} faults", trial_.produced(),
                                 trial_.table().Count(), counts_["faults"]);
  for (const auto& [what, value] : sample) line += fmt::format(", {:.0f} {}", value, what);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int Soak::Run() {
  const auto over = Clock::now() + options_.length;
  std::string trouble;
  while (Clock::now() < over) {
    Disturb();
    if (Clock::now() < next_sample_) continue;
    next_sample_ = Clock::now() + options_.sample_every;
    samples_.push_back(Look(system_, trial_));
    Tell(samples_.back());
  }
  trouble += trial_.Finish(kEndLimit);
  const testing::History history = trial_.Collect();
  const testing::Audit audit = trial_.Judge(history);
  trouble += audit.text() + Growth(samples_);
  const std::string rows = trial_.table().Value("SELECT count(*) FROM fencepost_ledger");
  if (rows != std::to_string(trial_.orders())) {
    trouble += fmt::format("the ledger has {} rows of {} orders\n", rows, trial_.orders());
  }
  std::printf("%s, seed %llu: %d records, %zu effects, %d lost, %d doubled, %d out of order",
              trouble.empty() ? "ok" : "FAILED", static_cast<unsigned long long>(options_.seed),
              trial_.produced(), history.effects.size(), audit.counts().at("lost"),
              audit.counts().at("doubled"), audit.counts().at("out of order"));
  for (const auto& [what, count] : counts_) std::printf(", %d %s", count, what.c_str());
  std::printf("\n");
  (void)std::fprintf(stderr, "%s", trouble.c_str());
  return trouble.empty() ? 0 : 1;
}

}  // namespace

std::string Growth(const std::vector<Sample>& samples) {
  std::map<std::string, std::vector<double>> curves;
  for (std::size_t i = samples.size() / 5; i < samples.size(); ++i) {
    for (const auto& [what, value] : samples[i]) curves[what].push_back(value);
  }
  if (curves.empty()) return "nothing was seen that could have grown\n";
  std::string text;
  for (const auto& [what, values] : curves) {
    const auto third = static_cast<std::ptrdiff_t>(values.size() / 3);
    if (third < static_cast<std::ptrdiff_t>(kThird)) {
      text += fmt::format(
          "{} was seen {} times after warming up, of at least {}: too seldom to say"
          " whether it grew\n",
          what, values.size(), 3 * kThird);
      continue;
    }
    const auto [low, high] = std::minmax_element(values.begin(), values.begin() + third);
    const double before = Floor({values.begin(), values.begin() + third});
    const double after = Floor({values.end() - third, values.end()});
    if (after - before <= std::max(*high - *low, Step(what))) continue;
    text += fmt::format("{} grew from {:.0f} to {:.0f}\n", what, before, after);
  }
  return text;
}

int RunSoak(const SoakOptions& options) { return Soak(options).Run(); }

}  // namespace fencepost::matrix
