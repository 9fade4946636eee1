// Two programs in one: the tests, and the long runs behind `./dev torture faults` and `… soak`.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fault/matrix/matrix.h"
#include "tests/fault/matrix/soak.h"

namespace fencepost::matrix {
namespace {

constexpr const char* kUsage =
    "torture faults [ROUNDS] [--once] [--kind PART_OF_A_NAME] [--phase PHASE] [--seed S]"
    " [--from FAULT/PHASE] [--database postgres|mariadb|sqlite] [--pipeline id|position|kafka]"
    " [--storm FAULTS]\ntorture faults list\n"
    "torture soak [--hours H | --minutes M] [--rate RECORDS_A_SECOND] [--seed S]"
    " [--database postgres|mariadb]\n";

std::optional<std::uint64_t> Number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<MatrixOptions> Parse(std::vector<std::string> words) {
  MatrixOptions options;
  options.once = std::erase(words, "--once") > 0;
  std::size_t at = 0;
  if (!words.empty() && !words[0].starts_with("--")) {
    const auto rounds = Number(words[at++]);
    if (!rounds || *rounds == 0 || *rounds > 1000) return std::nullopt;
    options.rounds = static_cast<int>(*rounds);
  }
  for (; at + 1 < words.size(); at += 2) {
    const std::string& value = words[at + 1];
    if (words[at] == "--kind") {
      options.kind = value;
    } else if (words[at] == "--phase") {
      options.phase = value;
    } else if (words[at] == "--from") {
      options.from = value;
    } else if (words[at] == "--database" && DatabaseNamed(value)) {
      options.database = DatabaseNamed(value);
    } else if (words[at] == "--pipeline" && PipelineNamed(value)) {
      options.pipeline = PipelineNamed(value);
    } else if (words[at] == "--storm" && Number(value).value_or(1001) <= 1000) {
      options.storm = static_cast<int>(*Number(value));
    } else if (words[at] == "--seed" && Number(value)) {
      options.seed = *Number(value);
    } else {
      return std::nullopt;
    }
  }
  if (at != words.size()) return std::nullopt;
  return options;
}

int FaultsMain(const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{"list"}) {
    for (const Fault& fault : AllFaults()) std::printf("%s\n", fault.name.c_str());
    return 0;
  }
  const auto options = Parse(words);
  if (!options) return (void)std::fputs(kUsage, stderr), 2;
  try {
    return RunMatrix(Plan(*options));
  } catch (const std::invalid_argument& error) {
    return (void)std::fprintf(stderr, "torture faults: %s\n", error.what()), 2;
  } catch (const std::exception& error) {
    return (void)std::fprintf(stderr, "torture faults: %s\n", error.what()), 1;
  }
}

int SoakMain(const std::vector<std::string>& words) {
  SoakOptions options;
  bool good = words.size() % 2 == 0;
  for (std::size_t at = 0; good && at < words.size(); at += 2) {
    if (const auto named = DatabaseNamed(words[at + 1]); named && words[at] == "--database") {
      options.database = *named;
      continue;
    }
    const auto value = Number(words[at + 1]);
    good = value && *value <= 1'000'000;
    if (!good) break;
    if (words[at] == "--hours") {
      options.length = std::chrono::hours(*value);
    } else if (words[at] == "--minutes") {
      options.length = std::chrono::minutes(*value);
    } else if (words[at] == "--seed") {
      options.seed = *value;
    } else if (words[at] == "--rate" && *value >= 10 && *value % 10 == 0) {
      options.records_a_second = static_cast<int>(*value);
    } else {
      good = false;
    }
  }
  if (!good) return (void)std::fputs(kUsage, stderr), 2;
  if (options.length < kShortestSoak) {
    return (void)std::fprintf(stderr,
                              "torture soak: growth is not seen in less than %d minutes; give"
                              " --minutes %d or more\n",
                              static_cast<int>(kShortestSoak.count()),
                              static_cast<int>(kShortestSoak.count())),
           2;
  }
  options.sample_every =
      std::clamp(options.length / 60, std::chrono::seconds(5), std::chrono::seconds(60));
  try {
    return RunSoak(options);
  } catch (const std::exception& error) {
    return (void)std::fprintf(stderr, "torture soak: %s\n", error.what()), 1;
  }
}

}  // namespace
}  // namespace fencepost::matrix

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "faults") {
    return fencepost::matrix::FaultsMain({words.begin() + 1, words.end()});
  }
  if (!words.empty() && words[0] == "soak") {
    return fencepost::matrix::SoakMain({words.begin() + 1, words.end()});
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
