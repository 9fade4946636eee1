// "Did you mean …?": the known word that is nearest to an unknown one. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fencepost::config {

// The nearest of `candidates` to `word`, if it is near enough to be a typing error.
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
