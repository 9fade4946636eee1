// Two programs in one: the tests, and the long runs behind `./dev torture faults` and `… soak`.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include "tests/fault/matrix/matrix.h"
#include "tests/fault/matrix/soak.h"

namespace fencepost::matrix {
namespace {

template <typename Value>
void AddNamed(CLI::App& app, const char* option, std::vector<std::string> names,
              std::optional<Value> (*named)(std::string_view), std::optional<Value>& value) {
  app.add_option_function<std::string>(
         option, [named, &value](const std::string& name) { value = named(name); })
      ->check(CLI::IsMember(std::move(names)));
}

void AddFaults(CLI::App& app, MatrixOptions& options) {
  app.add_option("ROUNDS", options.rounds, "or `list`")->check(CLI::Range(1, 1000));
  app.add_flag("--once", options.once, "each fault in one phase, by turns");
  app.add_option("--kind", options.kind, "the fault of that name, else those that contain it");
  app.add_option("--phase", options.phase);
  app.add_option("--seed", options.seed);
  app.add_option("--from", options.from, "FAULT/PHASE");
  app.add_option("--storm", options.storm, "faults one after the other")
      ->check(CLI::Range(1, 1000));
  AddNamed(app, "--database", {kDatabaseNames.begin(), kDatabaseNames.end()}, &DatabaseNamed,
           options.database);
  AddNamed(app, "--pipeline", {kPipelineNames.begin(), kPipelineNames.end()}, &PipelineNamed,
           options.pipeline);
}

int RunFaults(const MatrixOptions& options) { return RunMatrix(Plan(options)); }

int ListFaults() {
  for (const Fault& fault : AllFaults()) std::printf("%s\n", fault.name.c_str());
  return 0;
}

struct SoakWords {
  int hours = 0;
  int minutes = 0;
  std::optional<DatabaseKind> database{};
  SoakOptions options{};
};

void AddSoak(CLI::App& app, SoakWords& words) {
  app.add_option("--hours", words.hours)->check(CLI::Range(1, 1000));
  app.add_option("--minutes", words.minutes, "5 or more: growth is not seen in less")
      ->check(CLI::Range(static_cast<int>(kShortestSoak.count()), 60'000));
  app.add_option("--seed", words.options.seed);
  app.add_option("--rate", words.options.records_a_second, "records a second")
      ->check(CLI::Range(10, 1'000'000))
      ->check([](const std::string& rate) {
        return rate.ends_with('0') ? "" : "write a multiple of 10";
      });
  AddNamed(app, "--database", {kDatabaseNames.begin(), kDatabaseNames.end()}, &DatabaseNamed,
           words.database);
}

int RunSoakOf(SoakWords words) {
  SoakOptions& options = words.options;
  options.database = words.database.value_or(options.database);
  if (words.hours > 0) options.length = std::chrono::hours(words.hours);
  if (words.minutes > 0) options.length = std::chrono::minutes(words.minutes);
  options.sample_every =
      std::clamp(options.length / 60, std::chrono::seconds(5), std::chrono::seconds(60));
  return RunSoak(options);
}

int TortureMain(int argc, char** argv) {
  CLI::App app("long runs on real servers", "torture");
  app.require_subcommand(1);
  CLI::App& faults = *app.add_subcommand("faults");
  CLI::App& list = *faults.add_subcommand("list", "the names of the faults");
  CLI::App& soak = *app.add_subcommand("soak");
  MatrixOptions options;
  SoakWords words;
  AddFaults(faults, options);
  AddSoak(soak, words);
  try {
    app.parse(argc, argv);
    if (list.parsed()) return ListFaults();
    return soak.parsed() ? RunSoakOf(words) : RunFaults(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::invalid_argument& error) {
    return (void)std::fprintf(stderr, "torture: %s\n", error.what()), 2;
  } catch (const std::exception& error) {
    return (void)std::fprintf(stderr, "torture: %s\n", error.what()), 1;
  }
}

}  // namespace
}  // namespace fencepost::matrix

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "faults" || what == "soak") return fencepost::matrix::TortureMain(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
