// A span of a trace, as OpenTelemetry knows it (semantic conventions 1.30: messaging, database).
// Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "consumer/trace/trace_context.h"

namespace fencepost::consumer {

enum class SpanKind : std::uint8_t { kInternal = 1, kServer, kClient, kProducer, kConsumer };

using SpanValue = std::variant<std::string, std::int64_t>;
using SpanAttributes = std::vector<std::pair<std::string_view, SpanValue>>;  // names: literals

struct SpanEvent {
  Nanos at{0};  // unix time
  std::string name;
  SpanAttributes attributes;
};

struct Span {
  TraceContext context;      // of this span
  std::uint64_t parent = 0;  // 0: it is the first of its trace
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  Nanos start{0};  // unix time
  Nanos end{0};
  SpanAttributes attributes{};
  std::vector<SpanEvent> events{};
  std::vector<TraceContext> links{};
  std::string error{};  // why it failed, without anything of a record; empty: it did not
};

}  // namespace fencepost::consumer
