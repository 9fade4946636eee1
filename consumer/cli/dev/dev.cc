// fencepost dev FILE: a pipeline as its file says, on servers of this machine that come and go with
// the command. Read Story from top to bottom.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/dev/dev_options.h"
#include "consumer/cli/dev/effect_log.h"
#include "consumer/cli/dev/feeder.h"
#include "consumer/cli/local/local_servers.h"
#include "consumer/cli/run/process.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/outputs/rows/row_sql.h"
#include "consumer/testing/stand_in_table.h"
#include "consumer/worker/memory_engine.h"
#include "consumer/worker/worker_parts.h"
#include "locking/base/temp_folder.h"

namespace fencepost::cli {
namespace {

using consumer::PipelineOptions;

// What the command's own lines say, and what is no news of a cluster that was made for it.
constexpr std::array<std::string_view, 10> kMuted{
    "dead_lettered",    "http_listening", "not_ready", "ready",    "row_lost",
    "starts_committed", "starts_unknown", "stopped",   "stopping", "store_created"};

struct DevArguments {
  PipelineFiles pipeline;
  std::string produce;
  bool keep_output = false;
  std::string http = "127.0.0.1:0";
};

void Say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// The pipeline as its file says; what is replaced needs no variables. nullopt: it was told why.
std::optional<PipelineOptions> LoadForDev(const DevArguments& arguments,
                                          std::vector<std::string>& notes) {
  std::vector<std::string> stood_in;
  config::LoadResult loaded = LoadFileWithStandIns(
      arguments.pipeline.files.front(), arguments.pipeline.beside, stood_in,
      [&](std::string_view key) { return IsReplaced(key, arguments.keep_output); });
  for (const config::Finding& finding : loaded.findings) {
    std::fprintf(stderr, "%s\n", config::FormatFinding(finding).c_str());
  }
  if (!loaded.options) return std::nullopt;
  if (const auto checked = consumer::CheckHandler(loaded.options->handler); !checked) {
    PrintError(fmt::format("{}: {}", loaded.options->name, checked.error().Line()));
    return std::nullopt;
  }
  if (const auto named = NameTopics(loaded.options->kafka); !named) {
    PrintError(
        fmt::format("dev: no topic comes to mind that {} matches: give kafka.topics one by "
                    "name for this command",
                    named.error()));
    return std::nullopt;
  }
  notes = UseOneCluster(*loaded.options);
  return std::move(loaded.options);
}

class Dev {
 public:
  Dev(const DevArguments& arguments, PipelineOptions file, std::vector<std::string> notes,
      DevInput input)
      : arguments_(arguments),
        file_(std::move(file)),
        notes_(std::move(notes)),
        input_(std::move(input)),
        effects_(file_) {}

  // The exit code.
  int Story() {
    const auto started = StartKafka()
                             .and_then([&] { return StartLockNode(); })
                             .and_then([&] { return MakeTable(); })
                             .and_then([&] { return StartPage(); })
                             .and_then([&] { return StartFeeder(); });
    if (!started && started.error().code == "http_bad_address") return ExitUsage(started.error());
    if (!started) return ExitFailed("dev: " + started.error().Line());
    notes_.insert(notes_.end(), dev_.notes.begin(), dev_.notes.end());
    for (const std::string& note : notes_) Say("  note    " + note);
    const int code = process_->RunUntilStopped(signals_);
    feeder_->Stop();
    return Verdict(code);
  }

 private:
  using Outcome = tl::expected<void, Error>;

  Outcome StartKafka() {
    if (folder_->path().empty()) return Failure("no temporary folder could be made");
    const auto topics = TopicsOf(file_);
    if (auto started = servers_.StartKafka(topics); !started) return started;
    std::string names;
    for (const auto& topic : topics) names += (names.empty() ? "" : ", ") + topic.name;
    Say(fmt::format("{}: {}, on servers of this machine alone", arguments_.pipeline.files.front(),
                    file_.name));
    Say(fmt::format("  kafka   {}, in this process; topics: {}", servers_.brokers().front(),
                    names));
    return {};
  }

  Outcome StartLockNode() {
    std::string node(consumer::kMemoryNode);
    if (const auto program = LocalServers::LockNodeProgram()) {
      const auto ttl = std::max(file_.lock.lock.max_ttl, file_.lock.lock.ttl);
      const auto started = servers_.StartLockNodes(1).and_then(
          [&] { return servers_.InitStore(fmt::format("{}ms", ttl.count())); });
      if (!started) return started;
      node = servers_.lock_nodes().front();
      Say(fmt::format("  locks   {}, one {}", node, *program));
    } else {
      Say("  locks   one node in this process: there is neither redis-server nor valkey-server");
    }
    dev_ = ForDev(file_, {.brokers = servers_.brokers(),
                          .lock_node = node,
                          .folder = folder_->path(),
                          .keep_output = arguments_.keep_output});
    return {};
  }

  Outcome MakeTable() {
    Say(fmt::format("  output  {}", WhereOutputIs()));
    if (arguments_.keep_output) return {};
    const auto* table = std::get_if<consumer::SqliteOptions>(&dev_.options.output);
    if (table == nullptr) return {};
    const auto made = consumer::CreateTables(*table);
    if (!made) return tl::unexpected(Error{"sqlite", made.error(), table->path, ""});
    return {};
  }

  [[nodiscard]] std::string WhereOutputIs() const {
    const std::string of_file = OutputText(file_.output);
    if (const auto* table = std::get_if<consumer::SqliteOptions>(&dev_.options.output)) {
      if (arguments_.keep_output) return of_file;
      const std::string name = consumer::TablesOf(*table).front().name;
      return fmt::format("{}; in SQLite, while this runs: sqlite3 {} {}", of_file,
                         ShellWord(table->path),
                         ShellWord("SELECT * FROM " + consumer::QuoteIdentifier(name, '"')));
    }
    if (const auto* lines = std::get_if<consumer::FileOptions>(&dev_.options.output)) {
      return arguments_.keep_output ? of_file : fmt::format("{}: {}", of_file, lines->path);
    }
    return of_file;
  }

  Outcome StartPage() {
    process_.emplace(std::vector<PipelineOptions>{dev_.options}, PipelineFiles{}, "dev",
                     Process::Hooks{.on_processed =
                                        [this](auto result, const auto& item, bool lost) {
                                          effects_.OnProcessed(result, item, lost);
                                        },
                                    .on_give_up = [this] { folder_.reset(); },
                                    .muted = {kMuted.begin(), kMuted.end()}});
    if (auto started = process_->StartHttp(arguments_.http); !started) return started;
    Say(fmt::format("  page    http://{}/", process_->http()));
    return {};
  }

  Outcome StartFeeder() {
    const std::string broker = servers_.brokers().front();
    Say(fmt::format("  send    {}kcat -P -b {} -t {}",
                    input_.terminal    ? "a line of JSON here, or with "
                    : input_.fd.open() ? input_.name + ", a record a line; or with "
                                       : "with --produce FILE, or with ",
                    broker, file_.kafka.topics.front()));
    feeder_.emplace(dev_.options, std::move(input_), effects_,
                    Feeder::Calls{.status = [this] { return process_->StatusOf(0); },
                                  .done = [this] { signals_.Wake(); }});
    return feeder_->Start();
  }

  int Verdict(int code) {
    if (effects_.Finished() > 0 || feeder_->bad() > 0) Say(effects_.Summary());
    if (code != kOk) return code;
    if (feeder_->bad() > 0) return ExitFailed(fmt::format("dev: {} not sent", feeder_->bad()));
    if (!feeder_->Complete()) return ExitFailed("dev: it ended before all records were processed");
    const auto dead = effects_.Count(consumer::ProcessedResult::kDeadLettered);
    if (feeder_->was_given() && dead > 0) return ExitFailed("dev: there are dead letters");
    return kOk;
  }

  static tl::unexpected<Error> Failure(std::string what) {
    return tl::unexpected(Error{"dev", std::move(what), "", ""});
  }

  const DevArguments arguments_;
  const PipelineOptions file_;
  std::vector<std::string> notes_;
  DevInput input_;
  const RunSignals signals_;
  std::optional<TempFolder> folder_{std::in_place};
  LocalServers servers_{folder_->path()};
  DevPipeline dev_;
  EffectLog effects_;
  std::optional<Process> process_;
  std::optional<Feeder> feeder_;  // last: it asks the process
};

int RunDev(const DevArguments& arguments) {
  const bool from_input = arguments.pipeline.files.front() == "-";
  if (from_input && arguments.produce == "-") {
    return ExitUsage("dev: FILE and the records of --produce cannot both be standard input");
  }
  std::vector<std::string> notes;
  auto file = LoadForDev(arguments, notes);
  if (!file) return kUsage;
  auto input =
      from_input && arguments.produce.empty() ? DevInput() : DevInput::Open(arguments.produce);
  if (!input) return ExitUsage(input.error());
  return Dev(arguments, std::move(*file), std::move(notes), std::move(*input)).Story();
}

}  // namespace

void AddDev(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<DevArguments>();
  CLI::App* command = app.add_subcommand(
      "dev", "run a pipeline on this machine alone, without any server, and show each effect");
  AddPipelineFile(*command, arguments->pipeline);
  command->add_option(
      "--produce", arguments->produce,
      "a file of records, a line each (-: standard input); ends when all are processed");
  command->add_flag("--keep-output", arguments->keep_output,
                    "write to the file's own output, not to SQLite");
  command->add_option("--http", arguments->http, "HOST:PORT of the status page")
      ->capture_default_str();
  command->callback(
      [&run, arguments] { run = [arguments] { return EndWithKafka(RunDev(*arguments)); }; });
}

}  // namespace fencepost::cli
