// The search of a small world to its end: every state that can be reached, each once, until one
// breaks an invariant. A world says what its states are, which follow one, and how one is printed;
// those that print alike are one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

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
  void Visit(State state, std::string print) {
    if (!seen_.insert(std::move(print)).second) return;
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
  const std::size_t most_;
  std::unordered_set<std::string> seen_;
  std::vector<State> open_;
  Searched searched_;
};

}  // namespace fencepost::model
