// fencepost tables plan|apply|check FILE: the tables that a pipeline needs and its database lacks.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/cli/tables/schema_types.h"
#include "consumer/cli/tables/topic_sample.h"
#include "consumer/outputs/tables/table_store.h"
#include "consumer/pipeline/read_topics.h"

namespace fencepost::cli {
namespace {

using consumer::PipelineOptions;
using consumer::TablePlan;

constexpr std::size_t kMostRemark = 2000;

enum class Action : std::uint8_t { kPlan, kApply, kCheck };

struct TablesArguments {
  PipelineFiles pipeline;
  int sample = 0;
  bool yes = false;
};

// The output is looked at, and, where records are read, Kafka; a variable that only others name
// need not be set.
std::optional<PipelineOptions> LoadForTables(const TablesArguments& arguments) {
  const std::string& file = arguments.pipeline.files.front();
  std::vector<std::string> stood_in;
  config::LoadResult loaded =
      LoadFileWithStandIns(file, arguments.pipeline.beside, stood_in, [&](std::string_view key) {
        return !key.starts_with("output.") && !key.starts_with("kafka.decode.registry") &&
               (arguments.sample == 0 || !key.starts_with("kafka."));
      });
  for (const config::Finding& finding : loaded.findings) {
    if (finding.severity != config::Severity::kError) continue;
    std::fprintf(stderr, "%s\n", config::FormatFinding(finding).c_str());
  }
  if (config::HasErrors(loaded.findings)) return std::nullopt;
  return std::move(loaded.options);
}

// On one line each: what is in a name must not become a statement.
void PrintComment(std::string_view text) { fmt::print("-- {}\n", Printable(text, kMostRemark)); }

// SQL, so that it can be given to the database's own program.
void Print(const TablePlan& plan, const std::string& about, const std::vector<std::string>& notes) {
  PrintComment(about + (plan.empty() ? " has all that is needed" : " lacks:"));
  for (const std::string& note : notes) PrintComment(note);
  for (const TablePlan::Step& step : plan.steps) {
    fmt::print("\n");
    for (const std::string& remark : step.remarks) PrintComment(remark);
    fmt::print("{};\n", step.sql);
  }
  if (!plan.differences.empty() || !plan.notes.empty()) fmt::print("\n");
  for (const std::string& difference : plan.differences) PrintComment("differs: " + difference);
  for (const std::string& note : plan.notes) PrintComment("note: " + note);
  std::fflush(stdout);
}

class Tables {
 public:
  Tables(const TablesArguments& arguments, PipelineOptions options)
      : arguments_(arguments),
        options_(std::move(options)),
        store_(consumer::MakeTableStore(options_.output)) {}

  // The exit code.
  int Do(Action action) {
    if (store_ == nullptr) {
      return ExitUsage(fmt::format("tables: pipeline {} writes to {}, which has no tables",
                                   options_.name, OutputName(options_.output)));
    }
    const auto plan = Plan();
    if (!plan) return ExitFailed("tables: " + plan.error().Line());
    Print(*plan,
          fmt::format("{}: {} {}", arguments_.pipeline.files.front(), OutputName(options_.output),
                      store_->terms().where),
          notes_);
    if (action == Action::kCheck) return plan->empty() ? kOk : kFailed;
    if (action == Action::kPlan || plan->steps.empty()) return kOk;
    return Apply(plan->steps);
  }

 private:
  tl::expected<TablePlan, Error> Plan() {
    auto wanted = consumer::WantedTables(options_.output);
    if (!wanted) {
      return tl::unexpected(Error{"rows", wanted.error().what, "output", wanted.error().hint});
    }
    if (wanted->empty()) {
      notes_.emplace_back("what statements write to is yours");
    } else if (auto learnt = LearnTypes(*wanted); !learnt) {
      return tl::unexpected(std::move(learnt.error()));
    }
    const auto dialect = *consumer::DialectOf(options_.output);
    const auto found = store_->Connect().and_then([&] {
      return FindTables(store_->catalogue(), *wanted, options_.identity.ByPosition(), dialect);
    });
    if (!found) return tl::unexpected(found.error().error);
    return PlanTables(*wanted, *found, dialect, store_->terms(),
                      options_.guarantee == consumer::Guarantee::kExactlyOnce);
  }

  // By the registry's schemas, and by samples.
  tl::expected<void, Error> LearnTypes(std::vector<consumer::WantedTable>& wanted) {
    const bool schemas = !options_.kafka.decode.registry.url.empty();
    if (!schemas && arguments_.sample == 0) return {};
    const consumer::ReadTopics read(options_.kafka.topics);
    tl::expected<std::vector<std::string>, Error> topics = read.names();
    if (arguments_.sample > 0) {
      topics = TopicsOf(options_.kafka);
      if (!topics) return tl::unexpected(topics.error());
    } else if (!read.pattern().empty()) {
      notes_.emplace_back(
          "schemas of topics that patterns match are asked for with --sample alone");
    }
    if (schemas) {
      const auto taken = TakeSchemaTypes(options_, *topics, wanted);
      if (!taken) return tl::unexpected(taken.error());
      if (!taken->empty()) {
        notes_.push_back(fmt::format("types are by the schemas of {}", fmt::join(*taken, ", ")));
      }
    }
    if (arguments_.sample == 0) return {};
    const auto sample =
        SampleTopics(options_, *topics, static_cast<std::size_t>(arguments_.sample), wanted);
    if (!sample) return tl::unexpected(sample.error());
    if (sample->records == 0) {
      notes_.emplace_back("there are no records to be sampled");
    } else {
      notes_.push_back(fmt::format(
          "types are by {} record{}{}", sample->records, sample->records == 1 ? "" : "s",
          sample->without_handler ? ", but for what the handler makes, which was not called" : ""));
    }
    return {};
  }

  int Apply(const std::vector<TablePlan::Step>& steps) {
    if (!arguments_.yes) {
      if (isatty(STDIN_FILENO) != 1) {
        return ExitUsage("tables apply: nobody can be asked here; --yes runs it");
      }
      fmt::print(stderr, "\nRun {} on {}? [y/N] ",
                 steps.size() == 1 ? "this" : fmt::format("these {}", steps.size()),
                 store_->terms().where);
      std::string answer;
      std::getline(std::cin, answer);
      if (answer != "y" && answer != "yes") return ExitFailed("tables apply: nothing was run");
    }
    std::vector<std::string> statements;
    for (const TablePlan::Step& step : steps) statements.push_back(step.sql);
    if (const auto done = store_->Run(statements); !done) {
      const bool whole = consumer::DialectOf(options_.output) != consumer::Dialect::kMysql;
      return ExitFailed(fmt::format("tables apply: {}{}", done.error().error.Line(),
                                    whole ? "; nothing was changed" : ""));
    }
    fmt::print("\n-- done\n");
    return kOk;
  }

  const TablesArguments& arguments_;
  const PipelineOptions options_;
  const std::unique_ptr<consumer::TableStore> store_;
  std::vector<std::string> notes_;
};

int RunTables(const TablesArguments& arguments, Action action) {
  auto options = LoadForTables(arguments);
  if (!options) return kUsage;
  return Tables(arguments, std::move(*options)).Do(action);
}

}  // namespace

void AddTables(CLI::App& app, Run& run) {
  CLI::App* tables = app.add_subcommand(
      "tables", "what a pipeline needs of its database, as SQL: plan it, run it");
  tables->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Action action) {
    const auto arguments = std::make_shared<TablesArguments>();
    CLI::App* command = tables->add_subcommand(name, help);
    AddPipelineFile(*command, arguments->pipeline);
    command
        ->add_option("--sample", arguments->sample,
                     "types of columns are also by so many of the topics' newest records")
        ->check(CLI::Range(1, 100'000));
    if (action == Action::kApply) {
      command->add_flag("--yes", arguments->yes, "run it without a question");
    }
    command->callback([&run, arguments, action] {
      run = [arguments, action] { return RunTables(*arguments, action); };
    });
  };
  add("plan", "print what is missing, and what differs", Action::kPlan);
  add("apply", "print it and, when asked, run it; nothing is dropped or narrowed", Action::kApply);
  add("check", "print it; exit 1 where there is anything", Action::kCheck);
}

}  // namespace fencepost::cli
