#include "tests/model/flow/small_world.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tests/model/flow/small_world_history.h"

namespace fencepost::consumer::small_world {
namespace {

constexpr std::array kNames = {"deliver", "replay", "round",     "happen", "answer",
                               "look up", "handle", "letter",    "commit", "tick",
                               "tell",    "orphan", "ttl/2",     "ttl",    "revoke",
                               "lose",    "crash",  "no answer", "aborted"};

std::string Told(const History& history) {
  std::string text;
  for (const Step& step : history) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        kNames.at(static_cast<std::size_t>(step.kind)), step.worker);
  }
  return text;
}

}  // namespace

Found Search(const Rules& rules, std::size_t most_states) {
  Found found;
  model::Search<History> search(most_states);
  const auto live = [&](const History& history) {
    auto world = std::make_unique<World>(rules, found);
    for (const Step& step : history) world->Do(step);
    return world;
  };
  const auto visit = [&](History history, World& world) {
    if (!world.broken().empty()) return search.Break(world.broken() + ": " + Told(history));
    search.Visit(std::move(history), world.Print());
  };
  visit({}, *live({}));
  static_cast<model::Searched&>(found) = search.Run([&](const History& history) {
    auto world = live(history);
    const std::vector<Step> steps = world->Enabled();
    if (std::ranges::all_of(steps, [](Step step) { return World::IsTrouble(step.kind); })) {
      ++found.ends;
      auto calm = live(history);
      calm->EndInCalm();
      if (!calm->broken().empty()) search.Break(calm->broken() + ", after " + Told(history));
    }
    for (const Step& step : steps) {
      if (world == nullptr) world = live(history);
      world->Do(step);
      History next = history;
      next.push_back(step);
      visit(std::move(next), *world);
      world.reset();
    }
  });
  return found;
}

}  // namespace fencepost::consumer::small_world
