// The lines that `fencepost dev` shows.
#include "consumer/cli/dev/effect_log.h"

#include <gtest/gtest.h>

#include "config/loader.h"

namespace fencepost::cli {
namespace {

using namespace consumer;
using enum ProcessedResult;

PipelineOptions Load(std::string_view record_id, std::string_view output) {
  const std::string text = fmt::format(
      "version: 1\nname: orders\nguarantee: {}\nkafka: {{brokers: [k:1], topics: [orders]}}\n"
      "record_id: {}\ndead_letter: {{topic: dead}}\nlock: {{redis: {{nodes: [a:1]}}}}\n"
      "handler: {{jq: .}}\noutput: {}\n",
      output.starts_with("{file") ? "at-least-once" : "exactly-once", record_id, output);
  const auto loaded = config::LoadText(text, "orders.yaml", config::Environment::Process());
  for (const auto& finding : loaded.findings) {
    if (finding.severity == config::Severity::kError) {
      ADD_FAILURE() << config::FormatFinding(finding);
    }
  }
  return loaded.options.value();
}

class EffectLines : public ::testing::Test {
 protected:
  void Use(std::string_view record_id, std::string_view output) {
    log_ = std::make_unique<EffectLog>(Load(record_id, output));
  }
  std::string Line(ProcessedResult result, HandlerValues values, bool lost = false) {
    record_.offset = 7;
    record_.key = "k-1";
    const WriteItem item{.record = &record_,
                         .where = &where_,
                         .record_id = "o-1",
                         .values = &values,
                         .dead_letter = letter_};
    return log_->LineOf(result, item, lost);
  }

  std::unique_ptr<EffectLog> log_;
  Record record_;
  const TopicPartition where_{"orders", 2};
  const DeadLetter* letter_ = nullptr;
};

TEST_F(EffectLines, ShowTheRowAsItIsWritten) {
  Use("json:/id",
      "{postgres: {dsn: 'postgresql://d/d', table: t, columns: {id: record_id, n: json:/n, at: "
      "json:/at, note: 'json:/note?', some: 'json:/some?default', p: partition, o: 'json:/o?'}, "
      "convert: {at: ms}, on_conflict: update, key: [id], on_null_value: delete}}");
  EXPECT_EQ(Line(kDone, {R"({"n": 1.50, "at": 0, "o": {"a":
  "x"}})"}),
            R"(orders/2/7 o-1 -> t {"id": "o-1", "n": 1.50, "at": "1970-01-01T00:00:00.000000Z", )"
            R"("note": null, "p": 2, "o": {"a":   "x"}})");
  EXPECT_EQ(Line(kDone, {std::nullopt}), R"(orders/2/7 o-1 -> t deletes {"id": "o-1"})");
  EXPECT_EQ(Line(kDone, {R"({"n":"a","at":0})", R"({"n":true,"at":0,"some":1})"})
                .find(R"(orders/2/7 o-1 -> t {"id": "o-1", "n": "a")"),
            0U);
  EXPECT_EQ(Line(kDone, {R"({"n":1,"at":0})"}, true)
                .find("orders/2/7 o-1 -> t: a newer row stayed in the place of {"),
            0U);
}

TEST_F(EffectLines, ShowTheElementsOfAnArrayAsConvertMakesThem) {
  const struct {
    const char *convert, *array, *shown;
  } cases[] = {{"base64", R"(["AQI=",null])", R"(["\\x0102",null])"},
               {"bool", "[0,1]", "[false,true]"},
               {"decimal:2", R"(["BAg="])", R"(["10.32"])"},
               {"d", "[0]", R"(["1970-01-01"])"}};
  for (const auto& one : cases) {
    Use("json:/id", fmt::format("{{sqlite: {{path: o.db, table: t, columns: {{a: json:/a}}, "
                                "convert: {{a: {}}}}}}}",
                                one.convert));
    EXPECT_EQ(Line(kDone, {fmt::format(R"({{"a": {}}})", one.array)}),
              fmt::format(R"(orders/2/7 o-1 -> t {{"a": {}}})", one.shown));
  }
}

TEST_F(EffectLines, ShowTheRecordThatAKafkaOutputWrites) {
  Use("position", "{kafka: {topic: out, key: json:/c, value: value}}");
  EXPECT_EQ(
      Line(kDone, {R"({"c": 1})", R"({"c": "x"})"}),
      R"(orders/2/7 -> out {"key": "1", "value": {"c": 1}}, {"key": "x", "value": {"c": "x"}})");
}

TEST_F(EffectLines, ShowHowARecordEndsThatWritesNothing) {
  Use("json:/id", "{file: {path: o.jsonl}}");
  EXPECT_EQ(Line(kDone, {"1"}), R"(orders/2/7 o-1 -> o.jsonl {"key": "k-1", "value": 1})");
  EXPECT_EQ(Line(kNoOutput, {}), "orders/2/7 o-1 -> no row");
  EXPECT_EQ(Line(kFiltered, {}), "orders/2/7 o-1 -> filtered: `when` does not match");
  EXPECT_EQ(Line(kSkipped, {}), "orders/2/7 o-1 -> skipped: it was done before");
  EXPECT_EQ(Line(kSkipped, {}, true),
            "orders/2/7 o-1 -> skipped: id_conflict: its id was processed with other content");
  EXPECT_EQ(Line(kFailed, {}), "orders/2/7 o-1 -> failed: the pipeline stops here");
  const DeadLetter letter{.error = "no\namount", .error_class = "bad_record"};
  letter_ = &letter;
  EXPECT_EQ(Line(kDeadLettered, {}),
            "orders/2/7 o-1 -> dead letter in dead: bad_record: no amount");
}

TEST_F(EffectLines, AreHeldBackWhereTheyAreManyAndCounted) {
  Use("json:/id", "{file: {path: o.jsonl}}");
  const WriteItem item{.record = &record_, .where = &where_};
  ::testing::internal::CaptureStdout();
  for (int i = 0; i < EffectLog::kLinesPerSecond + 5; ++i)
    log_->OnProcessed(kNoOutput, item, false);
  log_->Tick();
  log_->OnProcessed(kSkipped, item, false);
  log_->Tick();
  const std::string shown = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::ranges::count(shown, '\n'), EffectLog::kLinesPerSecond + 2);
  EXPECT_NE(shown.find("… and 5 more; 105 records: 105 made no row\n"), std::string::npos) << shown;
  EXPECT_EQ(log_->Summary(), "106 records: 1 was done before, 105 made no row");
}

TEST_F(EffectLines, OfRecordsThatLostAreCountedApart) {
  Use("json:/id", "{file: {path: o.jsonl}}");
  const WriteItem item{.record = &record_, .where = &where_};
  for (const ProcessedResult result : {kDone, kSkipped}) {
    for (const bool lost : {false, true, true}) log_->OnProcessed(result, item, lost);
  }
  log_->OnProcessed(kSkipped, item, true);
  log_->OnProcessed(kFiltered, item, false);
  EXPECT_EQ(log_->Summary(),
            "8 records: 1 took effect, 1 was done before, 1 was filtered, 2 lost to newer rows, "
            "3 are id conflicts");
}

}  // namespace
}  // namespace fencepost::cli
