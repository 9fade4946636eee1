#include "tests/bench/shared/turns.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::bench {
namespace {

double ValueOf(const Figures& figures, const std::string& name) {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&name](const auto& figure) { return figure.first == name; });
  return found == figures.end() ? 0 : found->second;
}

Json Medians(const std::vector<Figures>& rounds) {
  Json medians = Json::object();
  for (const auto& [name, first] : rounds.front()) {
    std::vector<double> values;
    for (const Figures& figures : rounds) values.push_back(ValueOf(figures, name));
    medians[name] = Median(std::move(values));
  }
  return medians;
}

Json Ratios(const std::vector<Figures>& ours, const std::vector<Figures>& theirs,
            std::vector<std::string> compared) {
  if (compared.empty()) compared.push_back(ours.front().front().first);
  Json ratios = Json::object();
  for (const std::string& name : compared) {
    std::vector<double> values;
    for (std::size_t round = 0; round < ours.size(); ++round) {
      const double reference = ValueOf(theirs[round], name);
      if (reference != 0) values.push_back(ValueOf(ours[round], name) / reference);
    }
    ratios[name] = Median(std::move(values));
  }
  return ratios;
}

std::string Words(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

Json TakeTurns(const Measurement& measurement, std::vector<Side> sides) {
  if (measurement.references_only) {
    std::erase_if(sides, [](const Side& side) { return !side.reference; });
  }
  std::vector<std::vector<Figures>> measured(sides.size());
  for (int round = 0; round < measurement.rounds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      measured[i].push_back(sides[i].turn());
      if (measured[i].back().empty()) throw std::logic_error(sides[i].name + " has no figures");
    }
  }
  Json told = {{"bench", measurement.bench},
               {"of", measurement.of},
               {"words", measurement.words},
               {"rounds", measurement.rounds},
               {"load", std::round(LoadAverage() * 10) / 10},
               {"sides", Json::array()}};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    Json side = {{"name", sides[i].name}, {"figures", Medians(measured[i])}};
    for (std::size_t j = 0; j < sides.size(); ++j) {
      if (!sides[j].reference || sides[i].reference) continue;
      side["ratios"][sides[j].name] = Ratios(measured[i], measured[j], measurement.compared);
    }
    told["sides"].push_back(std::move(side));
  }
  return told;
}

std::string Number(double value) {
  const double size = std::abs(value);
  if (size >= 100 || value == 0) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.{}f}", value, size >= 1 ? 2 : 3);
}

std::string Table(const Json& measured) {
  std::string text = measured.at("bench").get<std::string>();
  for (const auto& [name, value] : measured.at("of").items()) {
    text += fmt::format(" {}={}", name, Words(value));
  }
  text += fmt::format("; {}medians of {}; load {}\n",
                      measured.at("words") == "" ? "" : Words(measured.at("words")) + "; ",
                      measured.at("rounds").dump(), measured.at("load").dump());
  const Json& sides = measured.at("sides");
  if (sides.empty()) return text;
  const Json& first = sides.front().at("figures");
  std::size_t widest = 0;
  for (const Json& side : sides) {
    widest = std::max(widest, side.at("name").get_ref<const std::string&>().size());
  }
  text += fmt::format("  {:{}}", "", widest);
  for (const auto& [name, value] : first.items()) text += fmt::format(" {:>13}", name);
  for (const Json& side : sides) {
    text += fmt::format("\n  {:{}}", side.at("name").get<std::string>(), widest);
    for (const auto& [name, value] : first.items()) {
      text += fmt::format(" {:>13}", Number(side.at("figures").value(name, 0.0)));
    }
    if (!side.contains("ratios")) continue;
    for (const auto& [reference, ratios] : side.at("ratios").items()) {
      for (const auto& [name, ratio] : ratios.items()) {
        text += fmt::format("  {:.2f} of {}'s {}", ratio.get<double>(), reference, name);
      }
    }
  }
  return text + "\n";
}

void Tell(const Json& measured) {
  fmt::print(stderr, "{}", Table(measured));
  fmt::print("{}\n", measured.dump());
  std::fflush(stdout);
}

}  // namespace fencepost::bench
