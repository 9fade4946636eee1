// Spans as a collector takes them: an ExportTraceServiceRequest of OTLP 1.x (opentelemetry-proto)
// in protobuf's binary form, written field by field. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/trace/span.h"

namespace fencepost::metrics {

// Who the spans come from.
struct TraceSource {
  std::string service;   // service.name
  std::string version;   // service.version, and of the scope `fencepost`
  std::string instance;  // service.instance.id: the worker
  // Further attributes; of one name the last. They go before the three above.
  std::vector<std::pair<std::string, std::string>> attributes{};
};

// Bytes of texts that are not UTF-8, which no collector takes, are '?' in it.
std::string TraceRequest(const TraceSource& source, std::span<const consumer::Span> spans);

// What a collector answers to a request that it has taken (ExportTraceServiceResponse).
struct TraceAnswer {
  std::int64_t rejected = 0;  // spans
  std::string why{};
};
std::optional<TraceAnswer> ReadTraceAnswer(const std::string& bytes);  // nullopt: it is none

}  // namespace fencepost::metrics
