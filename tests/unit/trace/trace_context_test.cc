// What headers say of a record's trace.
#include "consumer/trace/trace_context.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

constexpr std::string_view kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr std::string_view kSpan = "00f067aa0ba902b7";

// "none", or the traceparent that it means.
std::string Means(const std::optional<TraceContext>& context) {
  return context ? TraceparentText(*context) : "none";
}

// "none", "none 0" …; a "?" behind it: whoever comes decides.
std::string Means(const ParentTrace& parent) {
  if (parent.context.there())
    return Means(std::optional(parent.context)) + (parent.sampled ? "" : "?");
  return parent.sampled ? (*parent.sampled ? "none 1" : "none 0") : "none";
}

struct Row {
  std::string text;
  std::string means;
};

TEST(TraceContext, IsReadFromTraceparentAsW3cSays) {
  const std::string ids = std::string(kTrace) + "-" + std::string(kSpan);
  for (const Row& row : {
           Row{"00-" + ids + "-01", "00-" + ids + "-01"},
           Row{"00-" + ids + "-00", "00-" + ids + "-00"},
           Row{"00-" + ids + "-03", "00-" + ids + "-01"},       // a flag that is not known yet
           Row{"01-" + ids + "-01", "00-" + ids + "-01"},       // a later version
           Row{"01-" + ids + "-01-more", "00-" + ids + "-01"},  // … has more fields
           Row{"01-" + ids + "-01more", "none"},
           Row{"00-" + ids + "-01-more", "none"},
           Row{"ff-" + ids + "-01", "none"},
           Row{"00-" + ids + "-1", "none"},
           Row{"00-" + ids, "none"},
           Row{"0-" + ids + "-01", "none"},
           Row{"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "none"},
           Row{"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "none"},
           Row{"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "none"},
           Row{"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", "none"},
           Row{"00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "none"},
           Row{"00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "none"},
           Row{"", "none"},
       }) {
    EXPECT_EQ(Means(ParseTraceparent(row.text)), row.means) << row.text;
  }
}

TEST(TraceContext, IsReadFromB3) {
  const std::string ids = std::string(kTrace) + "-" + std::string(kSpan);
  for (const Row& row : {
           Row{ids + "-1", "00-" + ids + "-01"},
           Row{ids + "-0", "00-" + ids + "-00"},
           Row{ids + "-d", "00-" + ids + "-01"},
           Row{ids, "00-" + ids + "-00?"},
           Row{ids + "-true", "00-" + ids + "-01"},
           Row{ids + "-1-05e3ac9a4f6e3b90", "00-" + ids + "-01"},
           Row{"a3ce929d0e0e4736-00f067aa0ba902b7-1",
               "00-0000000000000000a3ce929d0e0e4736-00f067aa0ba902b7-01"},
           Row{"0", "none 0"},
           Row{"1", "none 1"},
           Row{"a3ce-00f067aa0ba902b7-1", "none 1"},
           Row{"0000000000000000-00f067aa0ba902b7-1", "none 1"},
           Row{"", "none"},
       }) {
    EXPECT_EQ(Means(ParseB3(row.text)), row.means) << row.text;
  }
}

TEST(TraceContext, OfARecordIsThatOfItsLastTraceparentAndThenOfB3) {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const std::string ids = std::string(kTrace) + "-" + std::string(kSpan);
  const std::string other = "a3ce929d0e0e47364bf92f3577b34da6-" + std::string(kSpan);
  const std::vector<std::pair<Headers, std::string>> rows = {
      {{{"traceparent", "00-" + ids + "-01"}}, "00-" + ids + "-01"},
      {{{"Traceparent", "00-" + ids + "-01"}}, "00-" + ids + "-01"},
      {{{"traceparent", "00-" + other + "-01"}, {"traceparent", "00-" + ids + "-00"}},
       "00-" + ids + "-00"},
      {{{"traceparent", "00-" + ids + "-01"}, {"b3", other + "-1"}}, "00-" + ids + "-01"},
      {{{"traceparent", "?"}, {"b3", ids + "-1"}}, "00-" + ids + "-01"},
      {{{"X-B3-TraceId", std::string(kTrace)}, {"X-B3-SpanId", std::string(kSpan)}},
       "00-" + ids + "-00?"},
      {{{"X-B3-Sampled", "0"}}, "none 0"},
      {{{"x-b3-traceid", std::string(kTrace)},
        {"x-b3-spanid", std::string(kSpan)},
        {"x-b3-sampled", "1"}},
       "00-" + ids + "-01"},
      {{{"X-B3-TraceId", std::string(kTrace)},
        {"X-B3-SpanId", std::string(kSpan)},
        {"X-B3-Flags", "1"}},
       "00-" + ids + "-01"},
      {{{"X-B3-TraceId", std::string(kTrace)}}, "none"},
      {{}, "none"},
  };
  for (const auto& [headers, means] : rows) {
    Record record;
    for (const auto& [name, value] : headers) record.headers.push_back({name, value});
    EXPECT_EQ(Means(TraceOf(record)), means) << means;
  }
  Record without_value;
  without_value.headers.push_back({kTraceparent, std::nullopt});
  EXPECT_EQ(Means(TraceOf(without_value)), "none");
}

TEST(TraceContext, TakesThePlaceOfThatOfTheRecordInItsHeaders) {
  const std::string ids = std::string(kTrace) + "-" + std::string(kSpan);
  const std::string old = "00-" + ids + "-01";
  const auto names = [](std::vector<HeaderView> headers) {
    SetTraceparent("new", headers);
    std::string text;
    for (const auto& [name, value] : headers) {
      text += std::string(name) + "=" + std::string(value.value_or("null")) + " ";
    }
    return text;
  };
  EXPECT_EQ(names({{"a", "1"}, {"Traceparent", old}, {"tracestate", "x"}, {"b", std::nullopt}}),
            "a=1 tracestate=x b=null traceparent=new ");
  EXPECT_EQ(names({{"traceparent", "?"}, {"tracestate", "x"}}), "traceparent=new ");
  EXPECT_EQ(names({{"b3", ids}, {"X-B3-TraceId", kTrace}, {"x-b4", "1"}}),
            "x-b4=1 traceparent=new ");
}

TEST(TraceContext, IsWrittenAsItIsRead) {
  const TraceContext context{.trace_high = 1, .trace_low = 2, .span = 3, .sampled = true};
  EXPECT_EQ(TraceparentText(context), "00-00000000000000010000000000000002-0000000000000003-01");
  EXPECT_EQ(ParseTraceparent(TraceparentText(context)), context);
  EXPECT_EQ(TraceIdText(context), "00000000000000010000000000000002");
  EXPECT_EQ(SpanIdText(context.WithSpan(0xabc).span), "0000000000000abc");
}

}  // namespace
}  // namespace fencepost::consumer
