#include "metrics/cells.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "locking/base/check.h"

namespace fencepost::metrics {

using prometheus::ClientMetric;

Metric::Metric(Metrics& all, Definition definition) : definition_(std::move(definition)) {
  all.push_back(this);
  for (const Label& label : definition_.labels) series_ *= static_cast<int>(label.values.size());
  for (const double bound : definition_.buckets) {
    bounds_.push_back(std::llround(bound * static_cast<double>(definition_.unit)));
  }
  if (!bounds_.empty()) width_ = bounds_.size() + 2;
  lines_ = std::make_unique<Line[]>((series_ * width_ + kPerLine - 1) / kPerLine);
}

std::atomic<std::int64_t>& Metric::At(int series, std::size_t cell) const {
  FENCEPOST_CHECK(series >= 0 && series < series_,
                  fmt::format("{} has no series {}", definition_.name, series));
  const std::size_t at = static_cast<std::size_t>(series) * width_ + cell;
  return lines_[at / kPerLine].cells[at % kPerLine];
}

void Metric::Add(std::int64_t delta, int series) {
  At(series, 0).fetch_add(delta, std::memory_order_relaxed);
}

void Metric::Set(std::int64_t value, int series) {
  At(series, 0).store(value, std::memory_order_relaxed);
}

std::size_t Metric::BucketOf(std::int64_t value) const {
  const auto bucket =
      std::ranges::find_if(bounds_, [value](std::int64_t bound) { return value <= bound; });
  return static_cast<std::size_t>(bucket - bounds_.begin());
}

double Metric::Exposed(std::int64_t value) const {
  return static_cast<double>(value) / static_cast<double>(definition_.unit);
}

void Metric::Observe(std::int64_t value, int series) {
  value = std::max<std::int64_t>(value, 0);
  At(series, BucketOf(value)).fetch_add(1, std::memory_order_relaxed);
  At(series, width_ - 1).fetch_add(value, std::memory_order_relaxed);
}

void Metric::Observe(std::int64_t value, const consumer::TraceContext& trace,
                     std::chrono::milliseconds unix_time, int series) {
  value = std::max<std::int64_t>(value, 0);
  Observe(value, series);
  const std::lock_guard lock(exemplars_mutex_);
  exemplars_[{static_cast<std::size_t>(series), BucketOf(value)}] = {trace, Exposed(value),
                                                                     unix_time};
}

std::int64_t Metric::Value(int series) const {
  return At(series, 0).load(std::memory_order_relaxed);
}

void Metric::Collect(const std::string& pipeline, std::vector<ClientMetric>& out,
                     Exemplars& exemplars) const {
  {
    const std::lock_guard lock(exemplars_mutex_);  // before the counts are read
    for (const auto& [where, exemplar] : exemplars_) {
      exemplars[{out.size() + where.first, where.second}] = exemplar;
    }
  }
  const auto exposed = [this](int series, std::size_t cell) {
    return Exposed(At(series, cell).load(std::memory_order_relaxed));
  };
  for (int i = 0; i < series_; ++i) {
    ClientMetric& one = out.emplace_back();
    if (!pipeline.empty()) one.label.push_back({"pipeline", pipeline});
    int within = series_;  // the last label moves fastest
    for (const auto& [name, values] : definition_.labels) {
      const int before = within;
      within /= static_cast<int>(values.size());
      one.label.push_back({name, values[static_cast<std::size_t>(i % before / within)]});
    }
    if (bounds_.empty()) {
      one.counter.value = one.gauge.value = exposed(i, 0);
      continue;
    }
    for (std::size_t bucket = 0; bucket <= bounds_.size(); ++bucket) {
      one.histogram.sample_count +=
          static_cast<std::uint64_t>(At(i, bucket).load(std::memory_order_relaxed));
      if (bucket == bounds_.size()) break;
      one.histogram.bucket.push_back({one.histogram.sample_count, definition_.buckets[bucket]});
    }
    one.histogram.sample_sum = exposed(i, width_ - 1);
  }
}

}  // namespace fencepost::metrics
