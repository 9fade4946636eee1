#include "consumer/trace/trace_context.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "consumer/record/headers.h"

namespace fencepost::consumer {
namespace {

// Hexadecimal digits and nothing else, as many as there are: at most 16.
std::optional<std::uint64_t> Hex(std::string_view digits) {
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

// The first fields of text, which '-' separates; what is left of it stays in text.
std::string_view TakeField(std::string_view& text) {
  const std::size_t end = std::min(text.find('-'), text.size());
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return field;
}

// A trace of 16 or 32 digits and a span of 16.
std::optional<TraceContext> Ids(std::string_view trace, std::string_view span) {
  if ((trace.size() != 16 && trace.size() != 32) || span.size() != 16) return std::nullopt;
  const auto high = trace.size() == 32 ? Hex(trace.substr(0, 16)) : std::uint64_t{0};
  const auto low = Hex(trace.substr(trace.size() - 16));
  const auto id = Hex(span);
  if (!high || !low || !id) return std::nullopt;
  const TraceContext context{.trace_high = *high, .trace_low = *low, .span = *id};
  return context.there() ? std::optional(context) : std::nullopt;
}

// Of B3: "1", "d" (debug) and "true" keep the trace, "0" and "false" do not.
std::optional<bool> Keeps(std::string_view sampled) {
  if (sampled == "1" || sampled == "d" || sampled == "true") return true;
  if (sampled == "0" || sampled == "false") return false;
  return std::nullopt;
}

ParentTrace B3Of(std::string_view trace, std::string_view span, std::string_view sampled) {
  ParentTrace parent{.context = Ids(trace, span).value_or(TraceContext()),
                     .sampled = Keeps(sampled)};
  parent.context.sampled = parent.sampled.value_or(false);
  return parent;
}

}  // namespace

std::string TraceIdText(const TraceContext& context) {
  return fmt::format("{:016x}{:016x}", context.trace_high, context.trace_low);
}

std::string SpanIdText(std::uint64_t span) { return fmt::format("{:016x}", span); }

std::string TraceparentText(const TraceContext& context) {
  return fmt::format("00-{:016x}{:016x}-{:016x}-{}", context.trace_high, context.trace_low,
                     context.span, context.sampled ? "01" : "00");
}

std::optional<TraceContext> ParseTraceparent(std::string_view text) {
  constexpr std::size_t kSize = 55;
  const bool shaped =
      text.size() >= kSize && text[2] == '-' && text[35] == '-' && text[52] == '-' &&
      std::ranges::none_of(text.substr(0, kSize), [](char c) { return c >= 'A' && c <= 'F'; });
  if (!shaped) return std::nullopt;
  const auto version = Hex(text.substr(0, 2));
  const auto flags = Hex(text.substr(53, 2));
  const bool known = version == 0;
  if (!version || !flags || *version == 0xff || (known && text.size() != kSize) ||
      (text.size() > kSize && text[kSize] != '-')) {
    return std::nullopt;
  }
  auto context = Ids(text.substr(3, 32), text.substr(36, 16));
  if (context) context->sampled = (*flags & 1) != 0;
  return context;
}

ParentTrace ParseB3(std::string_view text) {
  if (const auto alone = Keeps(text)) return {.context = {}, .sampled = alone};
  const std::string_view trace = TakeField(text);
  const std::string_view span = TakeField(text);
  return B3Of(trace, span, TakeField(text));
}

ParentTrace TraceOf(const Record& record) {
  std::string_view parent;
  std::string_view b3;
  std::string_view trace;
  std::string_view span;
  std::string_view sampled;
  for (const auto& [name, value] : record.headers) {
    if (!value || !IsTraceHeader(name)) continue;
    if (SameHeader(name, kTraceparent)) parent = *value;
    if (SameHeader(name, "b3")) b3 = *value;
    if (SameHeader(name, "x-b3-traceid")) trace = *value;
    if (SameHeader(name, "x-b3-spanid")) span = *value;
    if (SameHeader(name, "x-b3-sampled")) sampled = *value;
    if (SameHeader(name, "x-b3-flags") && *value == "1") sampled = "d";
  }
  if (const auto context = ParseTraceparent(parent)) return {*context, context->sampled};
  if (const ParentTrace given = ParseB3(b3); given.context.there() || given.sampled) return given;
  return B3Of(trace, span, sampled);
}

void SetTraceparent(std::string_view text, std::vector<HeaderView>& headers) {
  bool continued = false;
  for (const HeaderView& header : headers) {
    if (SameHeader(header.name, kTraceparent))
      continued = ParseTraceparent(header.value.value_or("")).has_value();
  }
  std::erase_if(headers, [&](const HeaderView& header) {
    return IsTraceHeader(header.name) && !(continued && SameHeader(header.name, "tracestate"));
  });
  headers.push_back({kTraceparent, text});
}

}  // namespace fencepost::consumer
