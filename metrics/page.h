// Everything a process shows at /metrics: the pipelines, merged into one family a metric (one HELP
// and TYPE however many pipelines there are), and the process itself.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <tl/expected.hpp>

#include "locking/base/error.h"
#include "metrics/open_metrics.h"
#include "metrics/pipeline_metrics.h"

namespace fencepost::metrics {

// Thread-safe.
class MetricsPage final : public prometheus::Collectable {
 public:
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  explicit MetricsPage(BuildInfo build);

  // The pipeline's metrics live as long as the page. Error: there is a pipeline of this name.
  tl::expected<PipelineMetrics*, Error> Add(PipelineInfo info, Log* log);

  SpanCells& spans() { return spans_; }

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;
  [[nodiscard]] std::string Render() const;             // Prometheus text format
  [[nodiscard]] std::string RenderOpenMetrics() const;  // the same with exemplars

 private:
  [[nodiscard]] std::vector<Family> Families() const;

  const BuildInfo build_;
  const double start_time_;  // read once: the kernel's boot time may move by a second
  SpanCells spans_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<PipelineMetrics>> pipelines_;  // guarded by mutex_
};

}  // namespace fencepost::metrics
