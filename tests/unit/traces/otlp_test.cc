// The numbers of the fields are those of opentelemetry-proto 1.x; Python's package of that name and
// a collector read the same bytes in tests/e2e/metrics and tests/component/metrics_traces.
#include "metrics/traces/otlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/traces/otlp_fields.h"

namespace fencepost::metrics {
namespace {

using namespace std::string_literals;
using consumer::Nanos;
using consumer::Span;
using consumer::SpanKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const TraceSource kSource{.service = "orders",
                          .version = "1.2.3",
                          .instance = "w-1",
                          .attributes = {{"zone", "a"}, {"service.name", "other"}, {"zone", "b"}}};

Span Simple() {
  return {.context = {0x0102030405060708, 0x090a0b0c0d0e0f10, 0xf1f2f3f4f5f6f7f8, true},
          .name = "orders process",
          .kind = SpanKind::kConsumer,
          .start = Nanos(1'700'000'000'000'000'001),
          .end = Nanos(1'700'000'000'000'000'002)};
}

Fields ResourceSpans(const std::vector<Span>& spans, const TraceSource& source = kSource) {
  return Fields(TraceRequest(source, spans)).Sub(1);
}

Fields SpanFields(const Span& span) { return ResourceSpans({span}).Sub(2).Sub(2); }

TEST(TraceRequest, NamesServiceVersionAndWorkerOverWhatTheEnvironmentSays) {
  EXPECT_EQ(ResourceSpans({}).Sub(1).Attributes(1),
            "zone=b|service.name=orders|service.version=1.2.3|service.instance.id=w-1");
}

TEST(TraceRequest, NamesItsScopeAndTheSchemaOfItsNames) {
  const Fields of_scope = ResourceSpans({Simple()}).Sub(2);
  EXPECT_EQ(of_scope.Sub(1).Text(1), "fencepost");
  EXPECT_EQ(of_scope.Sub(1).Text(2), "1.2.3");
  EXPECT_EQ(of_scope.Text(3), "https://opentelemetry.io/schemas/1.30.0");
}

TEST(TraceRequest, HasIdsAsBigEndianBytes) {
  Span span = Simple();
  span.parent = 0xff;
  const Fields fields = SpanFields(span);
  EXPECT_EQ(fields.Text(1), "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"s);
  EXPECT_EQ(fields.Text(2), "\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8"s);
  EXPECT_EQ(fields.Text(4), "\0\0\0\0\0\0\0\xff"s);
}

TEST(TraceRequest, HasNameKindTimesAndWhetherItIsSampled) {
  Span span = Simple();
  const Fields fields = SpanFields(span);
  EXPECT_EQ(fields.Text(5), "orders process");
  EXPECT_EQ(fields.Number(6), 5);
  EXPECT_EQ(fields.Number(7), 1'700'000'000'000'000'001);
  EXPECT_EQ(fields.Number(8), 1'700'000'000'000'000'002);
  EXPECT_EQ(fields.Number(16), 1);
  span.context.sampled = false;
  span.start = Nanos(-1);
  const Fields other = SpanFields(span);
  EXPECT_EQ(other.Number(16), -1);
  EXPECT_EQ(other.Number(7), 0);
}

TEST(TraceRequest, HasNoParentStatusEventOrLinkWhereThereIsNone) {
  const Fields fields = SpanFields(Simple());
  for (const int field : {4, 9, 11, 13, 15}) EXPECT_THAT(fields.All(field), IsEmpty()) << field;
}

TEST(TraceRequest, HasAttributesWithTheirTypes) {
  Span span = Simple();
  span.attributes = {{"a", std::int64_t{7}},
                     {"zero", std::int64_t{0}},
                     {"below", std::int64_t{-3}},
                     {"text", "x"s},
                     {"empty", ""s}};
  EXPECT_EQ(SpanFields(span).Attributes(9), "a=7|zero=0|below=-3|text=x|empty=");
}

TEST(TraceRequest, HasEventsWithTheirTimesAndAttributes) {
  Span span = Simple();
  span.events = {{.at = Nanos(5), .name = "lease lost", .attributes = {{"reason", "clock"s}}},
                 {.at = Nanos(6), .name = "retry", .attributes = {}}};
  const auto events = SpanFields(span).All(11);
  ASSERT_EQ(events.size(), 2U);
  const Fields first(events[0]);
  EXPECT_EQ(first.Number(1), 5);
  EXPECT_EQ(first.Text(2), "lease lost");
  EXPECT_EQ(first.Attributes(3), "reason=clock");
  EXPECT_EQ(Fields(events[1]).Text(2), "retry");
}

TEST(TraceRequest, HasLinksToOtherSpans) {
  Span span = Simple();
  span.links = {{1, 2, 3, true}, {0, 4, 5, false}};
  const auto links = SpanFields(span).All(13);
  ASSERT_EQ(links.size(), 2U);
  const Fields first(links[0]), second(links[1]);
  EXPECT_EQ(first.Text(1), "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2"s);
  EXPECT_EQ(first.Text(2), "\0\0\0\0\0\0\0\3"s);
  EXPECT_EQ(first.Number(6), 1);
  EXPECT_EQ(second.Text(1), "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\4"s);
  EXPECT_EQ(second.Number(6), -1);
}

TEST(TraceRequest, SaysWhyASpanFailed) {
  Span span = Simple();
  span.error = "the service answered 500";
  const Fields status = SpanFields(span).Sub(15);
  EXPECT_EQ(status.Text(2), "the service answered 500");
  EXPECT_EQ(status.Number(3), 2);
}

TEST(TraceRequest, HasOnlyTextsThatAreUtf8) {
  Span span = Simple();
  span.name = "a\xff";
  span.attributes = {{"id", "ü\xfe\xff"s}};
  EXPECT_EQ(SpanFields(span).Text(5), "a?");
  EXPECT_EQ(SpanFields(span).Attributes(9), "id=ü??");
}

TEST(TraceRequest, HasManySpansInTheirOrder) {
  std::vector<Span> spans(3, Simple());
  for (std::size_t i = 0; i < spans.size(); ++i) spans[i].name = std::to_string(i);
  std::vector<std::string> names;
  for (const auto& bytes : ResourceSpans(spans).Sub(2).All(2)) {
    names.push_back(Fields(bytes).Text(5));
  }
  EXPECT_THAT(names, ElementsAre("0", "1", "2"));
}

TEST(TraceAnswer, IsReadWhereACollectorRejectsSomeSpans) {
  struct Row {
    std::string bytes;
    std::int64_t rejected;
    std::string why;
  };
  for (const Row& row : {Row{"", 0, ""}, Row{"\x0a\x00"s, 0, ""}, Row{"\x0a\x02\x08\x03"s, 3, ""},
                         Row{"\x0a\x07\x08\x80\x01\x12\x02no"s, 128, "no"},
                         Row{"\x10\x05\x0a\x04\x12\x02hm"s, 0, "hm"}}) {
    const auto answer = ReadTraceAnswer(row.bytes);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->rejected, row.rejected);
    EXPECT_EQ(answer->why, row.why);
  }
}

TEST(TraceAnswer, IsNoneWhereTheBytesAreNoMessage) {
  for (const std::string& bytes : {"<html>"s, "\x0a\x09"s, "{}"s, "\x0a\x02\xff\xff"s}) {
    EXPECT_FALSE(ReadTraceAnswer(bytes)) << bytes;
  }
}

}  // namespace
}  // namespace fencepost::metrics
