// A page in Prometheus's text format, taken apart: families by name, series by their text.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace fencepost::metrics {

struct PageText {
  std::map<std::string, std::string> help, type;  // by family
  std::map<std::string, double> series;           // by `name{labels}`
  std::vector<std::string> repeated;              // families or series that came twice
};

inline PageText ParsePage(const std::string& text) {
  PageText page;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# ")) {
      std::istringstream words(line.substr(2));
      std::string kind, name, rest;
      words >> kind >> name;
      std::getline(words >> std::ws, rest);
      auto& into = kind == "HELP" ? page.help : page.type;
      if (!into.emplace(name, rest).second) page.repeated.push_back(line);
      continue;
    }
    const auto space = line.rfind(' ');
    const bool is_new =
        page.series.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second;
    if (!is_new) page.repeated.push_back(line);
  }
  return page;
}

}  // namespace fencepost::metrics
