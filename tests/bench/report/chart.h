// A line chart as SVG: the points stand side by side, evenly, whatever their distance; the height
// is linear and begins at 0.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fencepost::bench {

struct Series {
  std::string name;
  std::vector<std::optional<double>> values;  // one for each label; nothing: a gap
};

struct Chart {
  std::string title, x, y;  // what the axes are
  std::vector<std::string> labels{};
  std::vector<Series> series{};

  [[nodiscard]] std::string Svg() const;
};

// The least of 1, 2, 2.5, 5 × 10^n that is not below it: where the axis ends.
double RoundUp(double value);

}  // namespace fencepost::bench
