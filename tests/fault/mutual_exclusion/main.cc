// Three programs in one: the tests; `worker …`, which the storm starts; and the long run behind
// `./dev torture locks`: `torture [--minutes N] [--nodes K] [--seed S] [--history FILE]`.
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fault/mutual_exclusion/storm.h"
#include "tests/fault/mutual_exclusion/worker.h"

namespace fencepost::torture {
namespace {

constexpr const char* kUsage =
    "torture locks: --minutes N (1), --nodes 1|3|5|7 (5), --seed S (any): "
    "whole numbers are expected\n";

std::optional<StormOptions> Parse(const std::vector<std::string>& words) {
  StormOptions options;
  options.length = std::chrono::minutes(1);
  options.seed = std::random_device()() % 1'000'000;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) return std::nullopt;
    const std::string_view text = words[i + 1];
    if (words[i] == "--history") {
      options.history = text;
      continue;
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (words[i] == "--minutes" && value > 0 && value <= 10'000) {
      options.length = std::chrono::minutes(value);
    } else if (words[i] == "--nodes" && value % 2 == 1 && value <= 7) {
      options.nodes = static_cast<int>(value);
    } else if (words[i] == "--seed") {
      options.seed = value;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

int TortureMain(const std::vector<std::string>& words) {
  const auto options = Parse(words);
  if (!options) return (void)std::fputs(kUsage, stderr), 2;
  try {
    (void)std::fprintf(stderr, "torture locks: seed %llu, %d nodes, %lld s\n",
                       static_cast<unsigned long long>(options->seed), options->nodes,
                       static_cast<long long>(options->length.count() / 1000));
    Storm storm(*options, std::filesystem::read_symlink("/proc/self/exe").string());
    const StormReport report = storm.Run();
    for (const auto* lines : {&report.overlaps, &report.disorders, &report.troubles}) {
      for (const std::string& line : *lines) (void)std::fprintf(stderr, "%s\n", line.c_str());
    }
    (void)std::printf("%s\n", report.Line(*options).c_str());
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
    return fencepost::torture::TortureMain({words.begin() + 1, words.end()});
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
