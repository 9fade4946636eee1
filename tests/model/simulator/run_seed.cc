#include "tests/model/simulator/run_seed.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "tests/model/simulator/shrink.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

std::atomic<std::uint64_t> running_seed{0};

// A CHECK of the shipped code ends the process; which seed did it must be told all the same.
void TellSeed(int signal) {
  char text[64] = "seed ";
  std::size_t size = 5;
  char digits[24];
  std::size_t count = 0;
  for (std::uint64_t seed = running_seed; seed > 0; seed /= 10) {
    digits[count++] = static_cast<char>('0' + seed % 10);
  }
  while (count > 0) text[size++] = digits[--count];
  text[size++] = '\n';
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, size);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::optional<std::uint64_t> FromEnvironment(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

}  // namespace

std::optional<std::string> RunSeed(std::uint64_t seed, Counts* counts, Story story) {
  std::signal(SIGABRT, TellSeed);
  std::signal(SIGSEGV, TellSeed);
  running_seed = seed;
  Plan plan = MakePlan(seed);
  World world(plan, false);
  const auto failed = world.Run();
  if (counts != nullptr) {
    for (const auto& [what, count] : world.counts()) (*counts)[what] += count;
  }
  if (!failed) return std::nullopt;
  std::string text = fmt::format("seed {} ({}: {}): invariant {}: {}\n", seed, plan.kind,
                                 Describe(plan), failed->invariant, failed->text);
  if (story == Story::kShrunk) {
    plan = Shrink(std::move(plan), failed->invariant);
    text += fmt::format("shrunk to {}\n", Describe(plan));
  }
  World again(plan, true);  // once more, and written down
  const auto violation = again.Run();
  if (!violation) return fmt::format("seed {}: it failed, but not the second time", seed);
  for (const std::string& line : again.trace()) text += line + "\n";
  text += fmt::format("replay: FENCEPOST_SEED={}\n", seed);
  return text;
}

std::optional<std::uint64_t> OnlySeed() { return FromEnvironment("FENCEPOST_SEED"); }

}  // namespace fencepost::simulator
