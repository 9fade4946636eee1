// Single values of a pipeline file: ${…} replaced, durations, sizes and numbers read. Values in,
// values out; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace fencepost::config {

// Where ${VAR} and ${file:PATH} come from.
struct Environment {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // The error says why the file cannot be read, in a few words.
  std::function<tl::expected<std::string, std::string>(const std::string& path)> read_file;

  static Environment Process();  // getenv and the file system (at most 1 MiB a file)
};

// Replaces ${VAR}, ${VAR:-default} (unset or empty), ${file:/path} (without line ends at its end)
// and
// $${ (a literal ${), once: what is put in is not looked at again. The error names the variable or
// the file, never a value.
tl::expected<std::string, std::string> Expand(std::string_view text,
                                              const Environment& environment);

// The errors of these are predicates: "is not a duration; …".
using Milliseconds = std::chrono::milliseconds;
tl::expected<Milliseconds, std::string> ParseDuration(
    std::string_view text);                                                 // 250ms 10s 5m 24h 7d
tl::expected<std::uint64_t, std::string> ParseSize(std::string_view text);  // 512B 64KiB 10MiB 1GiB
tl::expected<std::int64_t, std::string> ParseInteger(std::string_view text);  // no 010, no 1e3
// Digits with or without a point, in thousandths: 2, 1.5, 0.125.
tl::expected<std::int64_t, std::string> ParseThousandths(std::string_view text);
tl::expected<bool, std::string> ParseBoolean(std::string_view text);  // true false

std::string DurationText(Milliseconds duration);  // in the largest unit that is exact

// The nearest of `candidates` to `word`, if it is near enough to be a slip of the hand.
template <typename Range>
std::optional<std::string> Nearest(std::string_view word, const Range& candidates);
std::size_t EditDistance(std::string_view a, std::string_view b);

template <typename Range>
std::optional<std::string> Nearest(std::string_view word, const Range& candidates) {
  std::optional<std::string> best;
  std::size_t least = word.size() <= 4 ? 2 : 1 + word.size() / 3;
  for (const auto& candidate : candidates) {
    const std::size_t distance = EditDistance(word, candidate);
    if (distance > least || (best && distance == least)) continue;
    if (distance >= candidate.size() || distance >= word.size()) continue;
    least = distance;
    best = std::string(candidate);
  }
  return best;
}

}  // namespace fencepost::config
