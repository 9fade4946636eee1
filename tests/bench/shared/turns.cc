#include "tests/bench/shared/turns.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include <fmt/format.h>

namespace fencepost::bench {
namespace {

using Values = std::map<std::string, std::vector<double>>;  // one a round, by figure

Json Medians(const Figures& names, const Values& values) {
  Json medians = Json::object();
  for (const auto& [name, first] : names) medians[name] = Median(values.at(name));
  return medians;
}

Json Ratios(const std::vector<std::string>& names, const Values& ours, const Values& theirs) {
  Json ratios = Json::object();
  for (const std::string& name : names) {
    std::vector<double> rounds;
    for (std::size_t round = 0; round < ours.at(name).size(); ++round) {
      const double reference = theirs.at(name)[round];
      if (reference != 0) rounds.push_back(ours.at(name)[round] / reference);
    }
    ratios[name] = Median(std::move(rounds));
  }
  return ratios;
}

}  // namespace

void TakeTurns(const Measurement& measurement, std::vector<Side> sides) {
  if (measurement.references_only) {
    std::erase_if(sides, [](const Side& side) { return !side.reference; });
  }
  std::vector<Values> values(sides.size());
  std::vector<Figures> last(sides.size());
  for (int round = 0; round < measurement.rounds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      last[i] = sides[i].turn();
      for (const auto& [name, value] : last[i]) values[i][name].push_back(value);
    }
  }
  Json line = {{"bench", measurement.bench},
               {"of", measurement.of},
               {"words", measurement.words},
               {"rounds", measurement.rounds},
               {"load", std::round(LoadAverage() * 10) / 10},
               {"sides", Json::array()}};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    Json side = {{"name", sides[i].name}, {"figures", Medians(last[i], values[i])}};
    auto compared = measurement.compared;
    if (compared.empty()) compared = {last[i].front().first};
    for (std::size_t j = 0; j < sides.size(); ++j) {
      if (!sides[j].reference || sides[i].reference) continue;
      side["ratios"][sides[j].name] = Ratios(compared, values[i], values[j]);
    }
    line["sides"].push_back(std::move(side));
  }
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

}  // namespace fencepost::bench
