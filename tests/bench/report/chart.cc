#include "tests/bench/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "tests/bench/shared/turns.h"

namespace fencepost::bench {
namespace {

constexpr double kWidth = 720, kHeight = 360;
constexpr double kLeft = 80, kRight = 700, kTop = 50, kBottom = 300;
constexpr int kLines = 5;  // of the grid
constexpr std::array kColours = {"#1f5fa8", "#c4571b", "#2f7d3b", "#7a3fa0"};

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Text(double x, double y, const std::string& text, const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more, Escaped(text));
}

}  // namespace

double RoundUp(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 2.5, 5.0}) {
    if (value <= step * power) return step * power;
  }
  return 10 * power;
}

std::string Chart::Svg() const {
  double highest = 0;
  for (const Series& one : series) {
    for (const auto& value : one.values) highest = std::max(highest, value.value_or(0));
  }
  const double top = RoundUp(highest);
  const auto count = static_cast<double>(std::max<std::size_t>(labels.size(), 1));
  const auto at_x = [count](std::size_t i) {
    return kLeft + (kRight - kLeft) * (static_cast<double>(i) + 0.5) / count;
  };
  const auto at_y = [top](double value) { return kBottom - (kBottom - kTop) * value / top; };

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  svg += Text(kLeft, 22, title, " font-size=\"15\"");
  svg += Text(kLeft, 40, y, " fill=\"#555555\"");
  svg += Text((kLeft + kRight) / 2, kBottom + 42, x, " text-anchor=\"middle\" fill=\"#555555\"");
  for (int line = 0; line <= kLines; ++line) {
    const double value = top * line / kLines;
    svg +=
        fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n",
                    kLeft, kRight, at_y(value), at_y(value));
    svg += Text(kLeft - 8, at_y(value) + 4, Number(value), " text-anchor=\"end\"");
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    svg += Text(at_x(i), kBottom + 20, labels[i], " text-anchor=\"middle\"");
  }
  for (std::size_t s = 0; s < series.size(); ++s) {
    const char* colour = kColours.at(s % kColours.size());
    std::string points;
    for (std::size_t i = 0; i < series[s].values.size(); ++i) {
      if (!series[s].values[i]) continue;
      const double height = at_y(*series[s].values[i]);
      points += fmt::format("{:.1f},{:.1f} ", at_x(i), height);
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", at_x(i),
                         height, colour);
    }
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       points, colour);
    svg += Text(kRight - 8, kTop - 10 + 16 * static_cast<double>(s), series[s].name,
                fmt::format(" text-anchor=\"end\" fill=\"{}\"", colour));
  }
  return svg + "</svg>\n";
}

}  // namespace fencepost::bench
