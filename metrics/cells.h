// The numbers of one pipeline: one relaxed atomic integer a counter or gauge, one a bucket plus a
// sum for a histogram. No mutex, so that counting never waits for a scrape. A scrape reads each
// number whole, but not all of them at one instant: a histogram's sum may be an observation ahead
// of its count.
//
// A metric's cells begin on a cache line of their own: what the engine, Kafka and output threads
// count lies in different metrics, so they do not disturb each other.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "metrics/metric_definitions.h"

namespace fencepost::metrics {

struct HistogramReading {
  std::vector<std::uint64_t> buckets;  // not cumulated; the last one goes up to infinity
  double sum = 0;                      // in the exposed unit
};

// Thread-safe. A series is named by its place: the index of the label's value in the table, for two
// labels first * (values of the second) + second; 0 without labels.
class Cells {
 public:
  explicit Cells(int nodes);  // the number of series of the label `node`

  void Add(Metric metric, std::int64_t delta, int series = 0);  // in the metric's CellUnit
  void Set(Metric metric, std::int64_t value, int series = 0);  // gauge
  void Observe(Metric metric, std::int64_t value,
               int series = 0);  // histogram; negative counts as 0

  // 0 for a metric whose labels are known only at run time.
  [[nodiscard]] int SeriesOf(Metric metric) const;
  [[nodiscard]] double Value(Metric metric, int series) const;  // in the exposed unit
  [[nodiscard]] HistogramReading Histogram(Metric metric, int series) const;

 private:
  static constexpr std::size_t kPerLine = 8;
  struct alignas(64) Line {
    std::array<std::atomic<std::int64_t>, kPerLine> cells{};
  };
  struct Place {
    std::size_t first_line = 0;
    int series = 0;
    int width = 1;                     // cells a series: 1, or buckets + infinity + sum
    std::vector<std::int64_t> bounds;  // of the buckets, in the CellUnit
  };

  [[nodiscard]] const Place& PlaceOf(Metric metric, int series) const;
  [[nodiscard]] std::atomic<std::int64_t>& At(const Place& place, int series, int cell) const;

  std::array<Place, kMetrics> places_;
  std::unique_ptr<Line[]> lines_;
};

// How many cell units make one exposed unit.
double PerUnit(CellUnit unit);

}  // namespace fencepost::metrics
