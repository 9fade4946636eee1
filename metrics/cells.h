// A metric and its numbers: one relaxed atomic integer a counter or gauge, one a bucket plus a sum
// for a histogram. No mutex, so that counting never waits for a scrape. A scrape reads each number
// whole, but not all of them at one instant: a histogram's sum may be an observation ahead of its
// count. Exemplars have a mutex: they come only with traces that are kept.
//
// A metric's cells begin on a cache line of their own: what the engine, Kafka and output threads
// count lies in different metrics, so they do not disturb each other.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include "consumer/trace/trace_context.h"

namespace fencepost::metrics {

// What is counted inside (integers, so that a cell is one atomic add): how many of it make one of
// the exposed unit.
enum class CellUnit : std::int64_t { kOne = 1, kMillis = 1'000, kNanos = 1'000'000'000 };

struct Label {
  std::string name;
  std::vector<std::string> values;  // none: known only at run time
};

struct Definition {
  prometheus::MetricType type = prometheus::MetricType::Gauge;
  std::string_view name;  // a literal, as is the help
  std::string_view help;  // the unit, and what to do when it moves
  std::vector<Label> labels;
  CellUnit unit = CellUnit::kOne;
  std::vector<double> buckets;  // upper bounds without infinity, in the exposed unit
};

// An observation that belongs to a trace: the newest of its bucket.
struct Exemplar {
  consumer::TraceContext trace;
  double value = 0;  // in the exposed unit
  std::chrono::milliseconds unix_time{0};
};
// By series, which is its place among those collected, and by bucket; the last one is infinity's.
using Exemplars = std::map<std::pair<std::size_t, std::size_t>, Exemplar>;

class Metric;
using Metrics = std::vector<const Metric*>;

// Thread-safe. A series is named by its place: the index of the label's value, for two labels
// first * (values of the second) + second; 0 without labels.
class Metric {
 public:
  Metric(Metrics& all, Definition definition);  // is one of `all` from now on, and does not move
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  void Add(std::int64_t delta, int series = 0);      // counter, gauge; in the CellUnit
  void Set(std::int64_t value, int series = 0);      // gauge
  void Observe(std::int64_t value, int series = 0);  // histogram; negative counts as 0
  // The same, as its bucket's exemplar from now on. `trace` is there.
  void Observe(std::int64_t value, const consumer::TraceContext& trace,
               std::chrono::milliseconds unix_time, int series = 0);
  // One more of the series that an enum's value names.
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void Count(Enum value) { Add(1, static_cast<int>(value)); }

  [[nodiscard]] const Definition& definition() const { return definition_; }
  [[nodiscard]] int series() const { return series_; }  // 0: of labels known only at run time
  [[nodiscard]] std::int64_t Value(int series) const;   // counter, gauge; in the CellUnit
  // Appends its series, with the label `pipeline` first where there is one, and adds their
  // exemplars, each of which is in the count of its bucket.
  void Collect(const std::string& pipeline, std::vector<prometheus::ClientMetric>& out,
               Exemplars& exemplars) const;

 private:
  static constexpr std::size_t kPerLine = 8;
  struct alignas(64) Line {
    std::array<std::atomic<std::int64_t>, kPerLine> cells{};
  };

  [[nodiscard]] std::atomic<std::int64_t>& At(int series, std::size_t cell) const;
  [[nodiscard]] std::size_t BucketOf(std::int64_t value) const;
  [[nodiscard]] double Exposed(std::int64_t value) const;

  const Definition definition_;
  int series_ = 1;
  std::size_t width_ = 1;             // cells a series: 1, or buckets + infinity + sum
  std::vector<std::int64_t> bounds_;  // of the buckets, in the CellUnit
  std::unique_ptr<Line[]> lines_;

  mutable std::mutex exemplars_mutex_;
  Exemplars exemplars_;  // guarded by exemplars_mutex_
};

template <prometheus::MetricType kType>
struct Number : Metric {
  Number(Metrics& all, std::string_view name, std::string_view help, std::vector<Label> labels = {},
         CellUnit unit = CellUnit::kOne)
      : Metric(all, {kType, name, help, std::move(labels), unit, {}}) {}
};
using Counter = Number<prometheus::MetricType::Counter>;
using Gauge = Number<prometheus::MetricType::Gauge>;

template <CellUnit kUnit>
struct Histogram : Metric {
  Histogram(Metrics& all, std::string_view name, std::string_view help, std::vector<double> buckets,
            std::vector<Label> labels = {})
      : Metric(all, {prometheus::MetricType::Histogram, name, help, std::move(labels), kUnit,
                     std::move(buckets)}) {}
};
using Seconds = Histogram<CellUnit::kNanos>;
using Sizes = Histogram<CellUnit::kOne>;

}  // namespace fencepost::metrics
