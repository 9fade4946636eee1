// The trace that a record belongs to, as headers carry it from service to service: W3C Trace
// Context (traceparent, level 1), and B3 of Zipkin as it is read (one header `b3`, or X-B3-*).
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/record/record.h"

namespace fencepost::consumer {

inline constexpr std::string_view kTraceparent = "traceparent";

// One span of one trace. Neither id is 0 but in one that is none.
struct TraceContext {
  std::uint64_t trace_high = 0;  // the first 16 hexadecimal digits; 0 in traces of 64 bits
  std::uint64_t trace_low = 0;
  std::uint64_t span = 0;
  bool sampled = false;  // whoever began the trace keeps it

  [[nodiscard]] bool there() const { return span != 0 && (trace_high | trace_low) != 0; }
  [[nodiscard]] TraceContext WithSpan(std::uint64_t other) const {
    return {trace_high, trace_low, other, sampled};
  }
  auto operator<=>(const TraceContext&) const = default;
};

std::string TraceIdText(const TraceContext& context);  // 32 digits
std::string SpanIdText(std::uint64_t span);            // 16 digits
// As the header has it: 00-TRACE-SPAN-01, or -00 where it is not sampled.
std::string TraceparentText(const TraceContext& context);

// Who began a trace, as headers say it.
struct ParentTrace {
  TraceContext context;         // none: the record begins its trace
  std::optional<bool> sampled;  // whoever comes decides, where it is not said
};

// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"; of a later version its first four
// fields. nullopt: it is none, or one of its ids is 0.
std::optional<TraceContext> ParseTraceparent(std::string_view text);
// "TRACE-SPAN", "TRACE-SPAN-1", "TRACE-SPAN-d-PARENT", or whether it is sampled alone: "0".
ParentTrace ParseB3(std::string_view text);
// Of the record's headers: the last traceparent if it can be read, else b3, else X-B3-TraceId,
// X-B3-SpanId and X-B3-Sampled or -Flags, in capitals or not.
ParentTrace TraceOf(const Record& record);
// Headers that carry the trace on: in place of any of the above one with this text, which outlives
// them. A tracestate stays where it belongs to the trace.
void SetTraceparent(std::string_view text, std::vector<HeaderView>& headers);

}  // namespace fencepost::consumer
