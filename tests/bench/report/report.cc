#include "tests/bench/report/report.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/bench/report/aims.h"
#include "tests/bench/report/chart.h"
#include "tests/bench/report/sizes.h"

namespace fencepost::bench {
namespace {

constexpr const char* kIntroduction =
    "# Results\n"
    "Written by `./dev bench report` from the lines that the commands at the end printed; nothing "
    "here is typed\nby hand. What each measures, and against which floor: [README.md](README.md). "
    "Figures are medians of the\nrounds; `… of floor` is the median of the ratios round by "
    "round.\n";

std::string Words(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool IsRun(const Json& line) { return line.at("bench") == "run"; }
bool IsPoint(const Json& line) { return line.at("bench") == "growth"; }

void Append(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

std::string Row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string Head(const std::vector<std::string>& names) {
  return Row(names) + Row(std::vector<std::string>(names.size(), "---"));
}

std::string AimsTable(const std::vector<Json>& lines) {
  std::string text = "\n## Aims\n" + Head({"aim", "bound", "measured", ""});
  for (const Aim& aim : Aims()) {
    const auto measured = Measured(aim, lines);
    text += Row({aim.words, (aim.at_least ? "≥ " : "≤ ") + Number(aim.bound),
                 measured ? Number(*measured) : "not measured",
                 !measured                 ? ""
                 : Reached(aim, *measured) ? "reached"
                                           : "missed"});
  }
  return text;
}

// All measurements of one kind in one table: a row a side.
std::string MeasurementTable(const std::vector<const Json*>& measurements) {
  std::vector<std::string> of, figures, ratios;
  for (const Json* measured : measurements) {
    for (const auto& [name, value] : measured->at("of").items()) Append(of, name);
    for (const Json& side : measured->at("sides")) {
      for (const auto& [name, value] : side.at("figures").items()) Append(figures, name);
      const Json compared = side.value("ratios", Json::object());
      for (const auto& [reference, all] : compared.items()) {
        for (const auto& [name, ratio] : all.items()) Append(ratios, reference + "/" + name);
      }
    }
  }
  std::vector<std::string> head = of;
  head.emplace_back("side");
  head.insert(head.end(), figures.begin(), figures.end());
  for (const std::string& ratio : ratios) {
    const std::size_t slash = ratio.find('/');
    head.push_back(ratio.substr(slash + 1) + " of " + ratio.substr(0, slash));
  }
  head.emplace_back("rounds");
  head.emplace_back("load");
  std::string text = Head(head);
  for (const Json* measured : measurements) {
    for (const Json& side : measured->at("sides")) {
      std::vector<std::string> cells;
      for (const std::string& name : of) {
        const Json& all = measured->at("of");
        cells.push_back(all.contains(name) ? Words(all.at(name)) : "");
      }
      cells.push_back(Words(side.at("name")));
      for (const std::string& name : figures) {
        const Json& all = side.at("figures");
        cells.push_back(all.contains(name) ? Number(all.at(name)) : "");
      }
      for (const std::string& ratio : ratios) {
        const Json::json_pointer at("/ratios/" + ratio);
        cells.push_back(side.contains(at) ? fmt::format("{:.2f}", side.at(at).get<double>()) : "");
      }
      cells.push_back(measured->at("rounds").dump());
      cells.push_back(measured->at("load").dump());
      text += Row(cells);
    }
  }
  return text;
}

std::vector<std::string> Curves(const std::vector<Json>& lines) {
  std::vector<std::string> curves;
  for (const Json& line : lines) {
    if (IsPoint(line)) Append(curves, Words(line.at("of").at("curve")));
  }
  return curves;
}

// What tells the points of one curve's lines apart, besides x.
std::string SeriesOf(const Json& point) {
  const Json& of = point.at("of");
  return "by " + Words(of.at("by")) + (of.contains("set") ? ", " + Words(of.at("set")) : "");
}

Chart ChartOf(const std::string& curve, const std::vector<Json>& lines) {
  Chart chart{.title = "Kafka → PostgreSQL: " + curve, .x = curve, .y = ""};
  std::vector<std::string> names;
  std::map<std::string, std::map<std::string, double>> values;
  for (const Json& line : lines) {
    if (!IsPoint(line) || line.at("of").at("curve") != curve) continue;
    const std::string x = Words(line.at("of").at("x"));
    Append(chart.labels, x);
    Append(names, SeriesOf(line));
    const auto first = line.at("sides").at(0).at("figures").items().begin();
    chart.y = first.key();
    values[SeriesOf(line)][x] = first.value();
  }
  for (const std::string& name : names) {
    Series series{.name = name, .values = {}};
    for (const std::string& label : chart.labels) {
      const auto at = values[name].find(label);
      series.values.push_back(at == values[name].end() ? std::optional<double>() : at->second);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

// The points of one curve, each with what it has of the first of its series.
std::string CurveTable(const std::string& curve, const std::vector<Json>& lines) {
  const Chart chart = ChartOf(curve, lines);
  std::vector<std::string> head{curve};
  for (const Series& series : chart.series) {
    head.push_back(series.name + ", " + chart.y);
    head.emplace_back("of the first");
  }
  std::string text = Head(head);
  for (std::size_t i = 0; i < chart.labels.size(); ++i) {
    std::vector<std::string> cells{chart.labels[i]};
    for (const Series& series : chart.series) {
      const auto first = std::ranges::find_if(series.values, [](auto& v) { return v.has_value(); });
      cells.push_back(series.values[i] ? Number(*series.values[i]) : "");
      cells.push_back(series.values[i] && **first > 0
                          ? fmt::format("{:.2f}", *series.values[i] / **first)
                          : "");
    }
    text += Row(cells);
  }
  return text;
}

std::string RunsTable(const std::vector<Json>& lines) {
  std::string text = "\n## Commands and machines\n" +
                     Head({"command", "when", "version", "machine", "librdkafka", "redis"});
  for (const Json& line : lines) {
    if (!IsRun(line)) continue;
    const Json& machine = line.at("machine");
    text +=
        Row({"`" + Words(line.at("command")) + "`", Words(line.at("at")), Words(line.at("version")),
             fmt::format("{}, {} cores, {} GiB, Linux {}", Words(machine.at("cpu")),
                         machine.at("cores").dump(), machine.at("memory_gib").dump(),
                         Words(machine.at("kernel"))),
             Words(line.at("librdkafka")), Words(line.at("redis"))});
  }
  return text;
}

}  // namespace

std::vector<Json> ReadMeasurements(const std::vector<std::string>& files) {
  std::vector<Json> lines;
  for (const std::string& path : files) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    std::set<std::string> curves;
    int number = 0;
    for (std::string text; std::getline(file, text);) {
      ++number;
      Json line = Json::parse(text, nullptr, false);
      const bool good = line.is_object() && line.contains("bench") &&
                        (IsRun(line) || (line.contains("of") && line.contains("sides")));
      if (!good) throw std::runtime_error(fmt::format("{}:{}: no measurement", path, number));
      if (IsPoint(line) && curves.insert(Words(line.at("of").at("curve"))).second) {
        std::erase_if(lines, [&line](const Json& other) {
          return IsPoint(other) && other.at("of").at("curve") == line.at("of").at("curve");
        });
      }
      const auto same = std::ranges::find_if(lines, [&line](const Json& other) {
        return !IsRun(line) && other.at("bench") == line.at("bench") &&
               other.at("of") == line.at("of");
      });
      same == lines.end() ? lines.push_back(std::move(line)) : void(*same = std::move(line));
    }
  }
  return lines;
}

std::string Results(const std::vector<Json>& lines) {
  std::string text = kIntroduction + AimsTable(lines);
  std::vector<std::string> benches;
  for (const Json& line : lines) {
    if (!IsRun(line) && !IsPoint(line)) Append(benches, Words(line.at("bench")));
  }
  for (const std::string& bench : benches) {
    std::vector<const Json*> measurements;
    for (const Json& line : lines) {
      if (line.at("bench") == bench) measurements.push_back(&line);
    }
    text += fmt::format("\n## {}\n{}.\n\n{}", bench, Words(measurements.front()->at("words")),
                        MeasurementTable(measurements));
  }
  for (const std::string& curve : Curves(lines)) {
    text += fmt::format("\n## Growth: {0}\n![{0}](results/growth-{0}.svg)\n\n{1}", curve,
                        CurveTable(curve, lines));
  }
  return text + RunsTable(lines);
}

std::map<std::string, std::string> Charts(const std::vector<Json>& lines) {
  std::map<std::string, std::string> charts;
  for (const std::string& curve : Curves(lines)) {
    charts["growth-" + curve + ".svg"] = ChartOf(curve, lines).Svg();
  }
  return charts;
}

void WriteReport(const std::vector<std::string>& files, const std::string& folder,
                 const std::string& sizes) {
  if (files.empty()) throw std::runtime_error("report of which files?");
  const std::vector<Json> lines = ReadMeasurements(files);
  const std::filesystem::path to(folder);
  std::filesystem::create_directories(to / "results");
  std::ofstream(to / "RESULTS.md") << Results(lines);
  for (const auto& [name, svg] : Charts(lines)) std::ofstream(to / "results" / name) << svg;
  if (sizes.empty()) return;
  std::stringstream document;
  document << std::ifstream(sizes).rdbuf();
  const std::string text = WithSizes(document.str(), lines);
  std::ofstream(sizes) << text;
}

}  // namespace fencepost::bench
