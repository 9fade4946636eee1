#include "tests/fault/matrix/matrix.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::matrix {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr seconds kPhaseLimit{20};
constexpr seconds kEndLimit{90};

// The worker that was told to stop ends, and another one comes.
void AwaitDrained(Trial& trial, testing::WorkerProcess& worker, const Scene& scene) {
  const bool killed = scene.counts.contains("kills");
  const auto code = worker.Wait(seconds(40));
  trial.Forgive(worker);
  if (scene.counts.contains("stops") || killed) return;
  trial.team().Add(worker.name());
  if (code != 0) {
    throw std::runtime_error(fmt::format("{} drained and ended with {}:\n{}", worker.name(),
                                         code.value_or(-1), worker.Log()));
  }
}

void Disturb(System& system, Trial& trial, const Fault& fault, Phase phase, CellResult& result) {
  // Outlives the watch: what is undone waits for nothing that is held.
  Scene scene{.system = system,
              .trial = trial,
              .worker = nullptr,
              .node = -1,
              .random = std::mt19937_64(result.seed),
              .stopping = phase == Phase::kDraining};
  PhaseWatch watch(system, trial, phase, result.seed);
  if (!watch.Await(kPhaseLimit)) throw std::runtime_error("no worker was seen in the phase");
  scene.worker = watch.worker();
  scene.node = watch.node();
  fault.begin(scene);
  watch.Release();
  (void)trial.FeedUntil(fault.lasts, [] { return false; });
  scene.undo.Now();
  if (phase == Phase::kDraining) AwaitDrained(trial, *watch.worker(), scene);
  result.counts = scene.counts;
}

void Run(System& system, const Cell& cell, CellResult& result) {
  const Fault& fault = *cell.fault;
  const std::uint64_t seed = result.seed;
  result.nodes = seed % 3 == 0 ? 3 : 5;
  system.Reset(result.nodes);
  if (fault.replica) system.database(cell.database).AddReplica();
  std::string name = result.name + fmt::format("-{}", seed);
  std::replace(name.begin(), name.end(), '/', '-');
  Trial trial(system, {.name = name,
                       .seed = seed,
                       .workers = seed % 5 == 0 ? 3 : 2,
                       .exec = fault.exec,
                       .database = cell.database,
                       .small_disk = fault.small_disk,
                       .by_position = cell.phase == Phase::kReleasing,
                       .moves = cell.phase >= Phase::kRebalancing});
  try {
    Disturb(system, trial, fault, cell.phase, result);
    (void)trial.FeedUntil(seconds(1), [] { return false; });
    result.trouble = trial.Finish(kEndLimit);
    const History history = trial.Collect();
    result.verdict = Judge(history);
    result.records = trial.produced();
    result.effects = static_cast<int>(history.effects.size());
    std::set<int> called;
    for (const Call& call : history.calls) {
      if (!called.insert(call.order).second) ++result.repeated_calls;
    }
    result.trouble += result.verdict.text;
    if (!result.verdict.text.empty()) result.trouble += trial.team().Tails();
  } catch (const std::exception& error) {
    result.trouble += fmt::format("{}\n{}", error.what(), trial.team().Tails());
  }
  if (result.trouble.empty()) trial.DropAll();
}

}  // namespace

std::string CellResult::Line() const {
  std::string text = fmt::format(
      "{:<48} {:<6} seed {} {:5.1f} s, {} nodes, {}, {} records, {} effects,"
      " {} repeated calls, {} tokens back",
      name, trouble.empty() ? "ok" : "FAILED", seed, seconds, nodes, NameOf(database), records,
      effects, repeated_calls, verdict.token_back);
  for (const auto& [what, count] : counts) text += fmt::format(", {} {}", count, what);
  return text;
}

CellResult RunCell(System& system, const Cell& cell) {
  CellResult result;
  result.name = cell.name;
  result.seed = cell.seed;
  result.database = cell.database;
  const auto begin = Clock::now();
  try {
    Run(system, cell, result);
  } catch (const std::exception& error) {
    result.trouble += error.what();
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

std::vector<Cell> Plan(const MatrixOptions& options) {
  const auto refuse = [](const std::string& option, const std::string& value) {
    throw std::invalid_argument(
        fmt::format("{} {} chooses no cell; ./dev torture faults list names the faults, and the"
                    " phases are {}",
                    option, value, fmt::join(kPhaseNames, ", ")));
  };
  const auto& all = AllFaults();
  const bool exact = std::any_of(all.begin(), all.end(),
                                 [&](const Fault& fault) { return fault.name == options.kind; });
  bool any_kind = false;
  std::vector<Cell> cells;
  for (int round = 0; round < options.rounds; ++round) {
    std::uint64_t turn = options.seed + static_cast<std::uint64_t>(round);
    for (const Fault& fault : all) {
      ++turn;
      if (exact ? fault.name != options.kind : fault.name.find(options.kind) == std::string::npos) {
        continue;
      }
      if (options.database && fault.database.value_or(*options.database) != *options.database) {
        continue;
      }
      any_kind = true;
      for (std::size_t at = 0; at < kPhaseNames.size(); ++at) {
        if (!options.phase.empty() && options.phase != kPhaseNames.at(at)) continue;
        if (options.once && at != turn % kPhaseNames.size()) continue;
        if (fault.by_id && static_cast<Phase>(at) == Phase::kReleasing) continue;
        cells.push_back({.fault = &fault,
                         .phase = static_cast<Phase>(at),
                         .name = fmt::format("{}/{}", fault.name, kPhaseNames.at(at)),
                         .seed = options.seed + cells.size(),
                         .database = options.database.value_or(
                             fault.database.value_or(DatabaseKind::kPostgres))});
      }
    }
  }
  if (!any_kind) refuse("--kind", options.kind);
  if (cells.empty()) refuse("--phase", options.phase);
  if (options.from.empty()) return cells;
  const auto from = std::find_if(cells.begin(), cells.end(),
                                 [&](const Cell& cell) { return cell.name == options.from; });
  if (from == cells.end()) refuse("--from", options.from);
  cells.erase(cells.begin(), from);
  return cells;
}

int RunMatrix(const std::vector<Cell>& cells) {
  System system;
  std::map<std::string, std::int64_t> sums;
  for (const Cell& cell : cells) {
    const CellResult result = RunCell(system, cell);
    std::printf("%s\n", result.Line().c_str());
    std::fflush(stdout);
    if (!result.trouble.empty()) {
      (void)std::fprintf(stderr, "%s, seed %llu:\n%s\n", result.name.c_str(),
                         static_cast<unsigned long long>(result.seed), result.trouble.c_str());
    }
    ++sums[" cells"];
    sums[" failed"] += result.trouble.empty() ? 0 : 1;
    sums["records"] += result.records;
    sums["effects"] += result.effects;
    sums["lost"] += result.verdict.lost;
    sums["doubled"] += result.verdict.doubled;
    sums["out of order"] += result.verdict.out_of_order;
    sums["tokens back"] += result.verdict.token_back;
    sums["effect and dead letter"] += result.verdict.both;
    sums["effect and dead letter where partitions moved"] += result.verdict.moved;
    for (const auto& [what, count] : result.counts) sums[what] += count;
  }
  std::string line;
  for (const auto& [what, count] : sums) {
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", count,
                        what.substr(what.front() == ' ' ? 1 : 0));
  }
  std::printf("%s\n", line.c_str());
  return sums[" failed"] == 0 ? 0 : 1;
}

}  // namespace fencepost::matrix
