#include "tests/fault/matrix/matrix.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr seconds kPhaseLimit{20};
constexpr seconds kEndLimit{90};
constexpr seconds kStormEndLimit{240};
constexpr int kStormRate = 1000;  // records a second: transactions are large

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

void Disturb(System& system, Trial& trial, const Fault& fault, Phase phase, std::uint64_t seed,
             bool among_others, std::map<std::string, int>& counts) {
  // Outlives the watch: what is undone waits for nothing that is held.
  Scene scene{.system = system,
              .trial = trial,
              .worker = nullptr,
              .node = -1,
              .random = std::mt19937_64(seed),
              .stopping = phase == Phase::kDraining};
  std::optional<PhaseWatch> watch(std::in_place, system, trial, phase, seed);
  if (watch->Await(kPhaseLimit)) {
    scene.worker = watch->worker();
    scene.node = watch->node();
  } else if (among_others) {
    watch.reset();  // the fault before it still lasts for the workers: amid that, then
    ++counts["outside its phase"];
  } else {
    throw std::runtime_error("no worker was seen in the phase");
  }
  fault.begin(scene);
  if (watch) watch->Release();
  (void)trial.FeedUntil(fault.lasts, [] { return false; });
  scene.undo.Now();
  if (phase == Phase::kDraining) AwaitDrained(trial, *scene.worker, scene);
  for (const auto& [what, count] : scene.counts) counts[what] += count;
}

// Faults that are drawn, in phases without a handler; no worker more than before.
void Storm(System& system, Trial& trial, const Cell& cell, std::map<std::string, int>& counts) {
  constexpr std::array kPhases = {Phase::kAcquiring, Phase::kWriting, Phase::kCommitting,
                                  Phase::kRebalancing};
  std::mt19937_64 random(cell.seed);
  for (int step = 0; step < cell.storm; ++step) {
    const Fault& fault = *cell.faults.at(random() % cell.faults.size());
    const Phase phase = kPhases.at(random() % kPhases.size());
    ++counts[fault.name];
    try {
      Disturb(system, trial, fault, phase, random(), true, counts);
    } catch (const std::exception& error) {
      throw std::runtime_error(
          fmt::format("step {}, {}/{}: {}", step + 1, fault.name, NameOf(phase), error.what()));
    }
    (void)trial.FeedUntil(milliseconds(random() % 1000), [] { return false; });
  }
}

TrialOptions OptionsOf(const Cell& cell) {
  const Fault& fault = *cell.faults.front();
  const std::uint64_t seed = cell.seed;
  TrialOptions options{.name = cell.name + fmt::format("-{}-{}", NameOf(cell.pipeline), seed),
                       .seed = seed,
                       .workers = seed % 5 == 0 ? 3 : 2,
                       .pipeline = cell.pipeline,
                       .handler = cell.storm > 0 ? Handler::kNone
                                  : fault.exec   ? Handler::kExec
                                                 : Handler::kHttp,
                       .batches = fault.batches,
                       .database = cell.database,
                       .small_disk = fault.small_disk,
                       .new_names = fault.new_names};
  std::replace(options.name.begin(), options.name.end(), '/', '-');
  if (cell.storm > 0) options.records_a_second = kStormRate;
  options.moves = cell.storm > 0 || *cell.phase >= Phase::kRebalancing;
  if (cell.pipeline == Pipeline::kPosition) {
    constexpr std::array kBlocks = {"", "7", "64", "1024"};
    constexpr std::array kOrders = {"none", "key", "partition"};
    // A block is given back when all of it is done.
    options.block = cell.phase == Phase::kReleasing ? "7" : kBlocks.at(seed % kBlocks.size());
    options.order = kOrders.at(seed / kBlocks.size() % kOrders.size());
  } else if (cell.pipeline == Pipeline::kKafka) {
    options.order = "partition";
  }
  return options;
}

void Run(System& system, const Cell& cell, CellResult& result) {
  const Fault& fault = *cell.faults.front();
  result.nodes = cell.seed % 3 == 0 ? 3 : 5;
  system.Reset(result.nodes);
  if (fault.replica) system.database(cell.database).AddReplica();
  Trial trial(system, OptionsOf(cell));
  try {
    if (cell.storm > 0) {
      Storm(system, trial, cell, result.counts);
    } else {
      Disturb(system, trial, fault, *cell.phase, cell.seed, false, result.counts);
    }
    (void)trial.FeedUntil(seconds(1), [] { return false; });
    result.trouble = trial.Finish(cell.storm > 0 ? kStormEndLimit : kEndLimit);
    const testing::History history = trial.Collect();
    const testing::Audit audit = trial.Judge(history);
    result.found = audit.counts();
    result.records = trial.produced();
    result.effects = static_cast<int>(history.effects.size());
    std::set<std::string> called;
    for (const testing::Call& call : history.calls) {
      if (!called.insert(call.record_id).second) ++result.repeated_calls;
    }
    result.trouble += audit.text();
    if (!audit.text().empty()) result.trouble += trial.team().Tails();
  } catch (const std::exception& error) {
    result.trouble += fmt::format("{}\n{}", error.what(), trial.team().Tails());
  }
  if (result.trouble.empty()) trial.DropAll();
}

}  // namespace

std::string Cell::Target() const {
  if (pipeline == Pipeline::kKafka) return "kafka to kafka";
  return fmt::format("by {} into {}", matrix::NameOf(pipeline), matrix::NameOf(database));
}

std::string CellResult::Line() const {
  const auto back = found.find("tokens back");
  std::string text = fmt::format(
      "{:<48} {:<6} seed {} {:5.1f} s, {} nodes, {}, {} records, {} effects,"
      " {} repeated calls, {} tokens back",
      cell.name, trouble.empty() ? "ok" : "FAILED", cell.seed, seconds, nodes, cell.Target(),
      records, effects, repeated_calls, back == found.end() ? 0 : back->second);
  for (const auto& [what, count] : counts) text += fmt::format(", {} {}", count, what);
  return text;
}

CellResult RunCell(System& system, const Cell& cell) {
  CellResult result;
  result.cell = cell;
  const auto begin = Clock::now();
  try {
    Run(system, cell, result);
  } catch (const std::exception& error) {
    result.trouble += error.what();
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

namespace {

// Nothing: no worker comes into that phase there, or the fault does not happen to it.
std::optional<Cell> CellOf(const MatrixOptions& options, const Fault& fault, Phase phase,
                           std::uint64_t seed) {
  // By id leases are left, not given back.
  const bool by_id = fault.Suits(Pipeline::kId) && phase != Phase::kReleasing;
  const Pipeline pipeline = options.pipeline.value_or(by_id ? Pipeline::kId : Pipeline::kPosition);
  if (!fault.Suits(pipeline)) return std::nullopt;
  if (pipeline == Pipeline::kId && phase == Phase::kReleasing) return std::nullopt;
  return Cell{
      .faults = {&fault},
      .phase = phase,
      .name = fmt::format("{}/{}", fault.name, NameOf(phase)),
      .seed = seed,
      .database = options.database.value_or(fault.database.value_or(DatabaseKind::kPostgres)),
      .pipeline = pipeline};
}

// Of the faults that are asked for, those that may follow each other in one trial without a
// handler.
Cell StormOf(const MatrixOptions& options, const std::vector<const Fault*>& faults, int round) {
  const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(round);
  const auto pipeline = options.pipeline.value_or(
      static_cast<Pipeline>(seed / kDatabaseNames.size() % kPipelineNames.size()));
  Cell cell{.faults = {},
            .phase = std::nullopt,
            .name = "storm",
            .seed = seed,
            .database =
                options.database.value_or(static_cast<DatabaseKind>(seed % kDatabaseNames.size())),
            .pipeline = pipeline,
            .storm = options.storm};
  for (const Fault* fault : faults) {
    // Among others it would leave transactions open for minutes.
    if (fault->new_names && pipeline == Pipeline::kKafka && faults.size() > 1) continue;
    const bool suits = fault->Suits(pipeline) && !fault->exec && !fault->replica &&
                       !fault->small_disk && !fault->name.starts_with("http-") &&
                       !fault->name.ends_with("-ledger-rows-dropped") &&
                       fault->database.value_or(cell.database) == cell.database;
    if (suits) cell.faults.push_back(fault);
  }
  return cell;
}

}  // namespace

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
  std::vector<const Fault*> chosen;
  std::vector<std::uint64_t> turns;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Fault& fault = all[i];
    if (exact ? fault.name != options.kind : fault.name.find(options.kind) == std::string::npos) {
      continue;
    }
    if (options.pipeline && !fault.Suits(*options.pipeline)) continue;
    if (options.database && fault.database.value_or(*options.database) != *options.database) {
      continue;
    }
    chosen.push_back(&fault);
    turns.push_back(i + 1);
  }
  if (chosen.empty()) refuse("--kind", options.kind);
  std::vector<Cell> cells;
  for (int round = 0; round < options.rounds; ++round) {
    if (options.storm > 0) {
      cells.push_back(StormOf(options, chosen, round));
      if (cells.back().faults.empty()) refuse("--storm of", options.kind);
      continue;
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::uint64_t turn = options.seed + static_cast<std::uint64_t>(round) + turns[i];
      for (std::size_t at = 0; at < kPhaseNames.size(); ++at) {
        if (!options.phase.empty() && options.phase != kPhaseNames.at(at)) continue;
        if (options.once && at != turn % kPhaseNames.size()) continue;
        const auto cell =
            CellOf(options, *chosen[i], static_cast<Phase>(at), options.seed + cells.size());
        if (cell) cells.push_back(*cell);
      }
    }
  }
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
      (void)std::fprintf(stderr, "%s, seed %llu:\n%s\n", cell.name.c_str(),
                         static_cast<unsigned long long>(cell.seed), result.trouble.c_str());
    }
    ++sums[" cells"];
    sums[" failed"] += result.trouble.empty() ? 0 : 1;
    sums["records"] += result.records;
    sums["effects"] += result.effects;
    for (const auto& [what, count] : result.found) sums[what] += count;
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
