#include "metrics/open_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <sstream>

#include "metrics/page.h"
#include "tests/unit/metrics/page_text.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using consumer::TraceContext;
using ::testing::HasSubstr;
using ::testing::Not;

struct AcceptRow {
  std::string what, accept;
  bool open_metrics = false;
};

const std::vector<AcceptRow>& AcceptRows() {
  static const std::vector<AcceptRow> rows = {
      {"no header", "", false},
      {"curl", "*/*", false},
      {"a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
      {"Prometheus 2.0",
       "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
       "encoding=delimited;q=0.7,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
       false},
      {"Prometheus 2.5, which knows a draft of it",
       "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       false},
      {"Prometheus 2.42",
       "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
       "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       true},
      {"Prometheus 2.53",
       "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;"
       "version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
       true},
      {"Prometheus 3",
       "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/"
       "openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
       "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
       true},
      {"Prometheus 3 that prefers the text",
       "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2",
       false},
      {"alone", "application/openmetrics-text", true},
      {"in capitals, with blanks",
       " Application/OpenMetrics-Text ;\tVersion=\"1.0.0\" ; charset=utf-8 ; Q=0.9 ", true},
      {"refused", "application/openmetrics-text;q=0,*/*", false},
      {"any version of it but this one",
       "application/openmetrics-text;version=1.0.0;q=0,application/openmetrics-text,*/*;q=0.1",
       false},
      {"less than the text, whatever the order",
       "application/openmetrics-text;q=0.2,text/plain;q=0.8", false},
      {"as much as the text, and first", "application/openmetrics-text,text/plain", true},
      {"as much as the text, and behind it", "text/plain,application/openmetrics-text", false},
      {"as much as anything", "*/*,application/openmetrics-text", true},
      {"less than any text", "text/*;q=0.9,application/openmetrics-text;q=0.8", false},
      {"the text's own quality is below that of */*",
       "*/*,text/plain;q=0.1,application/openmetrics-text;q=0.5", true},
      {"only by a wildcard", "application/*", false},
      {"a quality that is none", "application/openmetrics-text;q=high", false},
      {"a quality above 1", "application/openmetrics-text;q=2,text/plain", false},
      {"a later version", "application/openmetrics-text;version=2.0.0", false},
      {"empty entries", ",,application/openmetrics-text;;,", true},
      {"another name", "application/openmetrics-text-2", false},
  };
  return rows;
}

TEST(OpenMetrics, IsChosenWhereTheAcceptHeaderPrefersIt) {
  for (const auto& [what, accept, open_metrics] : AcceptRows()) {
    EXPECT_EQ(WantsOpenMetrics(accept), open_metrics) << what << ": " << accept;
  }
}

using prometheus::MetricType;

prometheus::ClientMetric Number(std::vector<prometheus::ClientMetric::Label> labels, double value) {
  prometheus::ClientMetric series;
  series.label = std::move(labels);
  series.counter.value = series.gauge.value = value;
  return series;
}

// One of two buckets, 1 and 2.5.
prometheus::ClientMetric Buckets(const std::string& pipeline, std::uint64_t below_1,
                                 std::uint64_t below_3, std::uint64_t all, double sum) {
  prometheus::ClientMetric series;
  series.label = {{"pipeline", pipeline}};
  series.histogram = {all, sum, {{below_1, 1}, {below_3, 2.5}}};
  return series;
}

constexpr TraceContext kTrace{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, true};

struct FamilyRow {
  std::string what;
  Family family;
  std::string text;
};

std::vector<FamilyRow> FamilyRows() {
  return {
      {"a counter has its name without _total",
       {{"records_total", "Records.", MetricType::Counter, {Number({}, 7)}}, {}},
       "# TYPE records counter\n# HELP records Records.\nrecords_total 7\n"},
      {"a counter of seconds",
       {{"paused_seconds_total", "S.", MetricType::Counter, {Number({{"pipeline", "a"}}, 1.25)}},
        {}},
       "# TYPE paused_seconds counter\n# UNIT paused_seconds seconds\n# HELP paused_seconds S.\n"
       "paused_seconds_total{pipeline=\"a\"} 1.25\n"},
      {"a gauge of bytes",
       {{"queue_bytes", "B.", MetricType::Gauge, {Number({}, -3)}}, {}},
       "# TYPE queue_bytes gauge\n# UNIT queue_bytes bytes\n# HELP queue_bytes B.\n"
       "queue_bytes -3\n"},
      {"a word that is no unit",
       {{"kilobytes", "B.", MetricType::Gauge, {Number({}, 1)}}, {}},
       "# TYPE kilobytes gauge\n# HELP kilobytes B.\nkilobytes 1\n"},
      {"labels and help are escaped",
       {{"lag", "a\"b\\c\nd", MetricType::Gauge, {Number({{"a", "x\"y\\z\n"}, {"b", ""}}, 0)}}, {}},
       "# TYPE lag gauge\n# HELP lag a\\\"b\\\\c\\nd\nlag{a=\"x\\\"y\\\\z\\n\",b=\"\"} 0\n"},
      {"a family without series",
       {{"lag", "L.", MetricType::Gauge, {}}, {}},
       "# TYPE lag gauge\n# HELP lag L.\n"},
      {"a histogram without exemplars",
       {{"keys", "K.", MetricType::Histogram, {Buckets("a", 1, 2, 3, 12.5)}}, {}},
       "# TYPE keys histogram\n# HELP keys K.\n"
       "keys_bucket{pipeline=\"a\",le=\"1.0\"} 1\nkeys_bucket{pipeline=\"a\",le=\"2.5\"} 2\n"
       "keys_bucket{pipeline=\"a\",le=\"+Inf\"} 3\n"
       "keys_count{pipeline=\"a\"} 3\nkeys_sum{pipeline=\"a\"} 12.5\n"},
      {"exemplars in several buckets of two pipelines",
       {{"keys",
         "K.",
         MetricType::Histogram,
         {Buckets("a\"", 1, 2, 3, 12.5), Buckets("b", 0, 1, 1, 2)}},
        {{{0, 0}, {kTrace, 0.25, 1'764'334'356'123ms}},
         {{0, 2}, {kTrace.WithSpan(1), 9, 1'764'334'357'000ms}},
         {{1, 1}, {{0, 2, 3}, 2, 5ms}}}},
       "# TYPE keys histogram\n# HELP keys K.\n"
       "keys_bucket{pipeline=\"a\\\"\",le=\"1.0\"} 1 "
       "# {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\",span_id=\"00f067aa0ba902b7\"} 0.25 "
       "1764334356.123\n"
       "keys_bucket{pipeline=\"a\\\"\",le=\"2.5\"} 2\n"
       "keys_bucket{pipeline=\"a\\\"\",le=\"+Inf\"} 3 "
       "# {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\",span_id=\"0000000000000001\"} 9 "
       "1764334357.000\n"
       "keys_count{pipeline=\"a\\\"\"} 3\nkeys_sum{pipeline=\"a\\\"\"} 12.5\n"
       "keys_bucket{pipeline=\"b\",le=\"1.0\"} 0\n"
       "keys_bucket{pipeline=\"b\",le=\"2.5\"} 1 "
       "# {trace_id=\"00000000000000000000000000000002\",span_id=\"0000000000000003\"} 2 0.005\n"
       "keys_bucket{pipeline=\"b\",le=\"+Inf\"} 1\n"
       "keys_count{pipeline=\"b\"} 1\nkeys_sum{pipeline=\"b\"} 2\n"},
  };
}

TEST(OpenMetrics, WritesEachKindOfFamily) {
  for (const auto& [what, family, text] : FamilyRows()) {
    EXPECT_EQ(OpenMetricsText({family}), text + "# EOF\n") << what;
  }
}

// The exemplars of a page, and what is left of it without them and without units.
std::pair<std::vector<std::string>, std::string> TakeExemplars(const std::string& page) {
  std::pair<std::vector<std::string>, std::string> taken;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# UNIT ")) continue;
    const auto mark = line.find(" # {");
    if (mark != std::string::npos) taken.first.push_back(line.substr(0, line.rfind(' ')));
    taken.second += line.substr(0, mark) + "\n";
  }
  return taken;
}

class OpenMetricsPage : public ::testing::Test {
 protected:
  MetricsPage page_{{"1.0", "c"}};
  PipelineMetrics* const orders_ = page_.Add({"orders", 3, 10s, "0123abcd"}, nullptr).value();
  PipelineMetrics* const refunds_ = page_.Add({"refunds", 3, 10s, "0123abcd"}, nullptr).value();
};

TEST_F(OpenMetricsPage, HasTheNumbersOfTheTextFormat) {
  orders_->OnLag({"a\"b\\c\n", 3}, 7);
  orders_->OnEndToEnd(30ms, kTrace);
  orders_->OnRound(locking::RoundResult::kAcquired, 3ms);
  refunds_->OnHandled(1h, kTrace);
  refunds_->OnBackpressure(1500ms);
  const PageText text = ParsePage(page_.Render());
  std::string page = TakeExemplars(page_.RenderOpenMetrics()).second;
  ASSERT_TRUE(page.ends_with("\n# EOF\n"));
  page.resize(page.size() - std::string("# EOF\n").size());
  for (auto at = page.find(".0\"}"); at != std::string::npos; at = page.find(".0\"}", at)) {
    page.erase(at, 2);  // of le="1.0"
  }
  PageText open = ParsePage(page);
  EXPECT_THAT(open.repeated, ::testing::IsEmpty());
  for (const auto& [series, value] : text.series) {
    ASSERT_TRUE(open.series.contains(series)) << series;
    if (series.starts_with("fencepost_")) {
      EXPECT_EQ(open.series[series], value) << series;
    }
  }
  EXPECT_EQ(open.series.size(), text.series.size());
  EXPECT_EQ(open.type.size(), text.type.size());
  for (const auto& [name, type] : text.type) {
    const bool counter = type == "counter";
    ASSERT_EQ(name.ends_with("_total"), counter) << name;
    const std::string family = counter ? name.substr(0, name.size() - 6) : name;
    EXPECT_EQ(open.type[family], type) << name;
    EXPECT_EQ(open.help[family], text.help.at(name)) << name;
  }
}

TEST_F(OpenMetricsPage, ShowsTheNewestTraceOfEachBucketInTheTwoDurations) {
  orders_->OnEndToEnd(30ms, kTrace.WithSpan(1));
  orders_->OnEndToEnd(40ms, kTrace.WithSpan(2));
  orders_->OnEndToEnd(20ms);  // without a trace
  orders_->OnEndToEnd(1h, kTrace.WithSpan(3));
  orders_->OnEndToEnd(-1s, kTrace.WithSpan(4));  // the producer's clock is ahead
  refunds_->OnHandled(7ms, kTrace.WithSpan(5));
  EXPECT_THAT(page_.Render(), Not(HasSubstr("trace_id")));
  const auto line = [](const std::string& metric, const std::string& pipeline,
                       const std::string& le, int count, int span, const std::string& value) {
    return "fencepost_" + metric + "_duration_seconds_bucket{pipeline=\"" + pipeline + "\",le=\"" +
           le + "\"} " + std::to_string(count) +
           " # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\",span_id=\"000000000000000" +
           std::to_string(span) + "\"} " + value;
  };
  EXPECT_THAT(TakeExemplars(page_.RenderOpenMetrics()).first,
              ::testing::ElementsAre(line("handler", "refunds", "0.01", 1, 5, "0.007"),
                                     line("record_end_to_end", "orders", "0.01", 1, 4, "0"),
                                     line("record_end_to_end", "orders", "0.05", 4, 2, "0.04"),
                                     line("record_end_to_end", "orders", "+Inf", 5, 3, "3600")));
}

TEST_F(OpenMetricsPage, TellsWhenAnExemplarWasSeenByTheWallClock) {
  const std::time_t before = std::time(nullptr);
  orders_->OnHandled(7ms, kTrace);
  const std::string page = page_.RenderOpenMetrics();
  const auto at = page.find("span_id=\"00f067aa0ba902b7\"} 0.007 ");
  ASSERT_NE(at, std::string::npos) << page;
  const double seen = std::stod(page.substr(page.find("0.007 ", at) + 6));
  EXPECT_GE(seen, static_cast<double>(before));
  EXPECT_LE(seen, static_cast<double>(std::time(nullptr)) + 1);
}

}  // namespace
}  // namespace fencepost::metrics
