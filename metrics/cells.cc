#include "metrics/cells.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "locking/base/check.h"

namespace fencepost::metrics {
namespace {

int CountSeries(const MetricInfo& info, int nodes) {
  int series = 1;
  for (const LabelInfo& label : info.labels) {
    series *= IsNodeLabel(label) ? nodes : static_cast<int>(label.values.size());
  }
  return info.scope == Scope::kPipeline ? series : 0;
}

}  // namespace

double PerUnit(CellUnit unit) {
  switch (unit) {
    case CellUnit::kMillis:
      return 1e3;
    case CellUnit::kNanos:
      return 1e9;
    case CellUnit::kOne:
      break;
  }
  return 1;
}

Cells::Cells(int nodes) {
  std::size_t lines = 0;
  for (const MetricInfo& info : AllMetrics()) {
    Place& place = places_[static_cast<std::size_t>(info.id)];
    place.first_line = lines;
    place.series = CountSeries(info, nodes);
    for (const double bound : info.buckets) {
      place.bounds.push_back(std::llround(bound * PerUnit(info.unit)));
    }
    if (info.kind == MetricKind::kHistogram)
      place.width = static_cast<int>(info.buckets.size()) + 2;
    const auto cells = static_cast<std::size_t>(place.series * place.width);
    lines += (cells + kPerLine - 1) / kPerLine;
  }
  lines_ = std::make_unique<Line[]>(lines);
}

const Cells::Place& Cells::PlaceOf(Metric metric, int series) const {
  const Place& place = places_[static_cast<std::size_t>(metric)];
  FENCEPOST_CHECK(series >= 0 && series < place.series,
                  fmt::format("{} has no series {}", Info(metric).name, series));
  return place;
}

std::atomic<std::int64_t>& Cells::At(const Place& place, int series, int cell) const {
  const auto at = static_cast<std::size_t>(series * place.width + cell);
  return lines_[place.first_line + at / kPerLine].cells[at % kPerLine];
}

void Cells::Add(Metric metric, std::int64_t delta, int series) {
  At(PlaceOf(metric, series), series, 0).fetch_add(delta, std::memory_order_relaxed);
}

void Cells::Set(Metric metric, std::int64_t value, int series) {
  At(PlaceOf(metric, series), series, 0).store(value, std::memory_order_relaxed);
}

void Cells::Observe(Metric metric, std::int64_t value, int series) {
  const Place& place = PlaceOf(metric, series);
  value = std::max<std::int64_t>(value, 0);
  const auto bucket = std::find_if(place.bounds.begin(), place.bounds.end(),
                                   [value](std::int64_t bound) { return value <= bound; });
  At(place, series, static_cast<int>(bucket - place.bounds.begin()))
      .fetch_add(1, std::memory_order_relaxed);
  At(place, series, place.width - 1).fetch_add(value, std::memory_order_relaxed);
}

int Cells::SeriesOf(Metric metric) const {
  return places_[static_cast<std::size_t>(metric)].series;
}

double Cells::Value(Metric metric, int series) const {
  const std::int64_t value = At(PlaceOf(metric, series), series, 0).load(std::memory_order_relaxed);
  return static_cast<double>(value) / PerUnit(Info(metric).unit);
}

HistogramReading Cells::Histogram(Metric metric, int series) const {
  const Place& place = PlaceOf(metric, series);
  HistogramReading reading;
  for (int i = 0; i + 1 < place.width; ++i) {
    reading.buckets.push_back(
        static_cast<std::uint64_t>(At(place, series, i).load(std::memory_order_relaxed)));
  }
  const auto sum = At(place, series, place.width - 1).load(std::memory_order_relaxed);
  reading.sum = static_cast<double>(sum) / PerUnit(Info(metric).unit);
  return reading;
}

}  // namespace fencepost::metrics
