// The search of a small world to its end: every state that can be reached, each once, until one
// breaks an invariant. A world says what its states are, which follow one, and how one is printed;
// those that print alike are one. Of a print 128 bits are kept (XXH3): of 10^9 states, two are
// taken for one with a probability of 10^-21.
#pragma once

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tsl/robin_set.h>

namespace fencepost::model {

struct Searched {
  std::size_t states = 0;
  bool to_its_end = false;  // nothing was left to be searched
  std::optional<std::string> violation;
};

template <typename State>
class Search {
 public:
  explicit Search(std::size_t most) : most_(most) {}

  // This state can be reached.
  void Visit(State state, std::string_view print) {
    const XXH128_hash_t digest = XXH3_128bits(print.data(), print.size());
    if (!seen_.insert({digest.high64, digest.low64}).second) return;
    ++searched_.states;
    open_.push_back(std::move(state));
  }
  // … and it breaks an invariant.
  void Break(std::string violation) {
    if (!searched_.violation) searched_.violation = std::move(violation);
  }
  // From what was visited. `expand(state)` visits all that follow.
  template <typename Expand>
  Searched Run(Expand expand) {
    while (!open_.empty() && !searched_.violation && searched_.states < most_) {
      State state = std::move(open_.back());
      open_.pop_back();
      expand(std::move(state));
    }
    searched_.to_its_end = open_.empty() && !searched_.violation;
    return std::move(searched_);
  }

 private:
  using Digest = std::pair<std::uint64_t, std::uint64_t>;
  struct Low {
    std::size_t operator()(const Digest& digest) const { return digest.second; }
  };
  const std::size_t most_;
  tsl::robin_set<Digest, Low> seen_;
  std::vector<State> open_;
  Searched searched_;
};

}  // namespace fencepost::model
