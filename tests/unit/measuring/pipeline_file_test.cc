// The pipeline files that ./dev bench gives to its workers.
#include "tests/bench/shared/pipeline_file.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/loader.h"
#include "tests/bench/shared/stream.h"
#include "tests/unit/config/pipeline_text.h"

namespace fencepost::bench {
namespace {

consumer::PipelineOptions Loaded(const PipelineFile& file) {
  const auto loaded = config::LoadText(file.Text(), "bench.yaml", config::FakeEnvironment());
  EXPECT_TRUE(loaded.options) << file.Text()
                              << ::testing::PrintToString(config::Lines(loaded.findings));
  return loaded.options.value_or(consumer::PipelineOptions{});
}

PipelineFile ToTable() {
  return {.bootstrap = "127.0.0.1:9092",
          .topic = "orders-1",
          .nodes = {"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003"},
          .by = "id",
          .dsn = "host=127.0.0.1 port=5432 user=postgres",
          .output_topic = "",
          .handler_url = "",
          .set = {}};
}

TEST(PipelineFile, IsOneThatTheWorkersTake) {
  PipelineFile file = ToTable();
  EXPECT_EQ(Loaded(file).identity.record_id.front().Text(), "json:/order_id");
  file.by = "position";
  EXPECT_EQ(Loaded(file).kafka.group, "orders-1");
  file.handler_url = "http://127.0.0.1:8080/";
  EXPECT_TRUE(Loaded(file).handler.outside());
  file.output_topic = "orders-1-out";
  file.handler_url = "";
  EXPECT_TRUE(std::holds_alternative<consumer::KafkaOutputOptions>(Loaded(file).output));
}

TEST(PipelineFile, TakesWhatIsSet) {
  PipelineFile file = ToTable();
  file.set = {"lock.contact=quorum", "lock.remember_done=0s", "processing.max_in_flight=17",
              "kafka/librdkafka/fetch.wait.max.ms=50"};
  const auto options = Loaded(file);
  EXPECT_EQ(options.lock.lock.contact, locking::Contact::kQuorum);
  EXPECT_EQ(options.processing.max_in_flight, 17u);
  EXPECT_THAT(file.Text(), ::testing::HasSubstr(R"("fetch.wait.max.ms": 50)"));
}

TEST(PipelineFile, RefusesWhatIsNoAssignment) {
  Json file = {{"name", "bench"}};
  EXPECT_THROW(Set(file, "lock.contact"), std::invalid_argument);
  EXPECT_THROW(Set(file, "=quorum"), std::invalid_argument);
  EXPECT_THROW(Set(file, "name.first=x"), std::invalid_argument);
}

TEST(RecordValue, IsJsonOfTheLengthThatIsAskedForWhereItFits) {
  EXPECT_EQ(RecordValue(7, 8, 256).size(), 256u);
  EXPECT_EQ(RecordValue(7, 8, 64).size(), 64u);
  const Json value = Json::parse(RecordValue(7, 8, 1));
  EXPECT_EQ(value.at("order_id"), "o-0000000007");
  EXPECT_EQ(value.at("amount"), 8);
}

}  // namespace
}  // namespace fencepost::bench
