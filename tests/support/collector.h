// A real OpenTelemetry Collector (tests/support/collector, built by fetch-collector): it takes OTLP
// over HTTP, and its file exporter writes what it has understood.
#pragma once

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace fencepost::testing {

class Collector {
 public:
  // Empty, or why it cannot be had here: there is no Go, or no network for its modules. In CI
  // (CI=true) it throws instead.
  static const std::string& WhyNot();

  Collector();  // returns when it takes spans
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  [[nodiscard]] std::string endpoint() const;  // http://127.0.0.1:PORT
  // All spans up to now, in the order in which they came, as OTLP's JSON has them (traceId, spanId,
  // parentSpanId, name, kind, startTimeUnixNano, events, links, status …), but for attributes,
  // which are {name: value}. Each has the attributes of its `resource`, and its `scope`.
  [[nodiscard]] nlohmann::json Spans() const;

 private:
  TempDir dir_;
  int port_ = FreePort();
  std::unique_ptr<Process> process_;
};

}  // namespace fencepost::testing
