// Three programs in one: the tests; `worker …`, which the storm starts; and the long run behind
// `./dev torture locks`: `torture [--minutes N] [--nodes K] [--seed S] [--history FILE]`.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include "tests/fault/mutual_exclusion/storm.h"
#include "tests/fault/mutual_exclusion/worker.h"

namespace fencepost::torture {
namespace {

int TortureMain(int argc, char** argv) {
  StormOptions options;
  options.seed = std::random_device()() % 1'000'000;
  int minutes = 1;
  CLI::App app("the lock on real nodes", "torture locks");
  app.add_option("--minutes", minutes)->check(CLI::Range(1, 10'000));
  app.add_option("--nodes", options.nodes)->check(CLI::IsMember({1, 3, 5, 7}));
  app.add_option("--seed", options.seed);
  app.add_option("--history", options.history, "a file for what the workers saw");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.length = std::chrono::minutes(minutes);
  try {
    (void)std::fprintf(stderr, "torture locks: seed %llu, %d nodes, %lld s\n",
                       static_cast<unsigned long long>(options.seed), options.nodes,
                       static_cast<long long>(options.length.count() / 1000));
    Storm storm(options, std::filesystem::read_symlink("/proc/self/exe").string());
    const StormReport report = storm.Run();
    for (const auto* lines : {&report.overlaps, &report.disorders, &report.troubles}) {
      for (const std::string& line : *lines) (void)std::fprintf(stderr, "%s\n", line.c_str());
    }
    (void)std::printf("%s\n", report.Line(options).c_str());
    const bool held =
        report.overlaps.empty() && report.disorders.empty() && report.troubles.empty();
    // A run in which the fence was never needed has shown nothing.
    return held && report.unfenced_violations > 0 ? 0 : 1;
  } catch (const std::exception& e) {
    return (void)std::fprintf(stderr, "torture locks: %s\n", e.what()), 1;
  }
}

}  // namespace
}  // namespace fencepost::torture

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "worker") {
    return fencepost::torture::WorkerMain({words.begin() + 1, words.end()});
  }
  if (!words.empty() && words[0] == "torture") {
    return fencepost::torture::TortureMain(argc - 1, argv + 1);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
