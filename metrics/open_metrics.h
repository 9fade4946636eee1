// The page of /metrics as OpenMetrics 1.0 has it (openmetrics.io): the numbers of Prometheus's text
// format, and with them units and the exemplars of histograms. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <prometheus/metric_family.h>

#include "metrics/cells.h"

namespace fencepost::metrics {

inline constexpr const char* kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// By the Accept header of a request (RFC 9110, 12.5.1): it names OpenMetrics 1.0, or no version of
// it, and not below text/plain; of two that it likes as much, the first one. What is malformed in
// it does not count.
[[nodiscard]] bool WantsOpenMetrics(std::string_view accept);

// Counters, gauges and histograms; the name of a counter ends in _total.
struct Family {
  prometheus::MetricFamily numbers;
  Exemplars exemplars;
};
[[nodiscard]] std::string OpenMetricsText(const std::vector<Family>& families);

}  // namespace fencepost::metrics
