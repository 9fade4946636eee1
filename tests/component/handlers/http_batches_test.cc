// The http handler with batches, against a server.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::StubServer;
using fencepost::testing::WaitUntil;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using Answer = StubServer::Answer;
using Json = nlohmann::json;

class HttpBatches : public RunnerFixture {
 protected:
  void Serve(StubServer::Handle handle, BatchOptions batch, HttpHandlerOptions options = {},
             int concurrency = 8) {
    server_ = std::make_unique<StubServer>(std::move(handle));
    options.url = server_->Url("/score");
    options.batch = batch;
    Start({.kind = options}, concurrency);
  }
  // A good answer: the value of each, and how many there are, in another order.
  static Answer Good(const StubServer::Request& request) {
    const Json records = Json::parse(request.body);
    Json answers = Json::array();
    for (auto record = records.rbegin(); record != records.rend(); ++record) {
      answers.push_back(
          {{"id", record->at("id")}, {"value", {record->at("value"), records.size()}}});
    }
    return {.body = answers.dump()};
  }
  std::vector<std::size_t> Sizes() const {
    std::vector<std::size_t> sizes;
    for (const auto& request : server_->requests()) {
      sizes.push_back(Json::parse(request.body).size());
    }
    return sizes;
  }

  std::unique_ptr<StubServer> server_;
};

TEST_F(HttpBatches, CarryTheirRecordsInOneRequest) {
  Serve(Good, {.max_records = 3, .linger = 20'000ms}, {.headers = {{"X-Shop", "7"}}});
  EXPECT_THAT(Outcomes({"1", "{\"x\":2}", "3"}), ElementsAre("[1,3]", "[{\"x\":2},3]", "[3,3]"));
  ASSERT_THAT(server_->requests(), SizeIs(1));
  const StubServer::Request request = server_->requests()[0];
  EXPECT_EQ(request.line, "POST /score HTTP/1.1");
  EXPECT_EQ(Json::parse(request.body)[0],
            Json::parse(R"({"id":"a","token":9007199254740993,"attempt":2,"key":null,"value":1})"));
  EXPECT_THAT(request.headers, Contains(Pair("content-type", "application/json")));
  EXPECT_THAT(request.headers, Contains(Pair("x-shop", "7")));
  for (const char* name : {"idempotency-key", "fencing-token", "x-fencepost-source"}) {
    EXPECT_THAT(request.headers, Not(Contains(Key(name))));
  }
  EXPECT_EQ(recorder_.handled(), 1);
}

TEST_F(HttpBatches, OfLinesSayTheirType) {
  Serve([](const StubServer::Request&) { return Answer{.body = "7\n8\n"}; },
        {.max_records = 2, .linger = 20'000ms}, {.batch_form = HttpBatchForm::kNdjson});
  EXPECT_THAT(Outcomes({"1", "2"}), ElementsAre("7", "8"));
  EXPECT_THAT(server_->requests()[0].headers,
              Contains(Pair("content-type", "application/x-ndjson")));
}

TEST_F(HttpBatches, ThatFailWholeFailForAllOfTheirRecords) {
  Serve([](const StubServer::Request&) { return Answer{.status = 400, .body = "no"}; },
        {.max_records = 2, .linger = 20'000ms});
  EXPECT_THAT(Outcomes({"1", "2"}), Each("400 shared: HTTP 400: no"));
  Serve([](const StubServer::Request&) { return Answer{.body = "[1]"}; },
        {.max_records = 2, .linger = 20'000ms});
  EXPECT_THAT(Outcomes({"1", "2"}), Each(::testing::StartsWith("bad_answer shared: ")));
  Serve([](const StubServer::Request&) { return Answer{.status = 0}; },
        {.max_records = 2, .linger = 20'000ms});
  EXPECT_THAT(Outcomes({"1", "2"}), Each(::testing::StartsWith("connection shared: ")));
}

TEST_F(HttpBatches, OfOneRecordFailForItAlone) {
  Serve([](const StubServer::Request&) { return Answer{.status = 400, .body = "no"}; },
        {.max_records = 2});
  EXPECT_THAT(Outcomes({"1"}), ElementsAre("400: HTTP 400: no"));
}

TEST_F(HttpBatches, ThatAreTooLargeAreHalvedAtOnceAndStaySo) {
  Serve(
      [](const StubServer::Request& request) {
        return Json::parse(request.body).size() > 2 ? Answer{.status = 413} : Good(request);
      },
      {.max_records = 8, .linger = 20'000ms}, {}, 1);
  EXPECT_THAT(Outcomes({"1", "2", "3", "4", "5", "6", "7", "8"}),
              ElementsAre("[1,2]", "[2,2]", "[3,2]", "[4,2]", "[5,2]", "[6,2]", "[7,2]", "[8,2]"));
  EXPECT_THAT(Outcomes({"1", "2", "3", "4"}), Each(::testing::EndsWith(",2]")));
  EXPECT_THAT(Outcomes({"1", "2"}), Each(::testing::EndsWith(",2]")));
  EXPECT_THAT(Sizes(), ElementsAre(8, 4, 2, 2, 4, 2, 2, 4, 2, 2, 2));
}

TEST_F(HttpBatches, OfOneRecordThatIsTooLargeAreItsOwnFailure) {
  Serve(
      [](const StubServer::Request& request) {
        return request.body.size() > 300 ? Answer{.status = 413} : Good(request);
      },
      {.max_records = 4, .linger = 20'000ms}, {}, 1);
  const std::string large = "\"" + std::string(400, 'x') + "\"";
  EXPECT_THAT(Outcomes({"1", large, "3", "4"}),
              ElementsAre("[1,1]", "413: HTTP 413", "[3,2]", "[4,2]"));
}

TEST_F(HttpBatches, LeaveOutARecordThatCannotBeSent) {
  Serve(Good, {.max_records = 3, .linger = 20'000ms});
  EXPECT_THAT(Outcomes({"1", "NaN", "3"}),
              ElementsAre("[1,2]", ::testing::StartsWith("bad_record: "), "[3,2]"));
}

TEST_F(HttpBatches, AreSentWithoutARecordWhoseLeaseHasEnded) {
  Serve([](const StubServer::Request& request) { return Good(request); },
        {.max_records = 2, .linger = 20'000ms});
  const auto good = Call({.value = "1", .record_id = "1"});
  const auto late = Call({.value = "2", .record_id = "2", .valid_until = Instant()});
  EXPECT_EQ(ClassOf(late), "cancelled");
  EXPECT_EQ(ClassOf(good), "success");
  ASSERT_EQ(server_->requests().size(), 1U);
  EXPECT_EQ(server_->requests().front().body.find(R"("id":"2")"), std::string::npos);
}

TEST_F(HttpBatches, GoOnForTheOthersWhereARecordIsCancelledAndAreBrokenOffWhereAllAre) {
  Serve(
      [this](const StubServer::Request& request) {
        server_->Hold();
        return Good(request);
      },
      {.max_records = 2, .linger = 20'000ms});
  const auto first = CallAll({"1", "2"});
  const auto second = CallAll({"3", "4"});
  ASSERT_TRUE(WaitUntil(10s, [&] { return server_->requests().size() == 2; }));
  Cancel(first[0]);
  for (const std::uint64_t id : second) Cancel(id);
  for (const std::uint64_t id : second) EXPECT_EQ(ClassOf(id), "cancelled");
  server_->Release();
  EXPECT_EQ(ClassOf(first[1]), "success");
  EXPECT_EQ(ClassOf(first[0]), "cancelled");
}

TEST_F(HttpBatches, AreAsManyAtATimeAsTheConcurrencySays) {
  Serve(
      [this](const StubServer::Request& request) {
        server_->Hold();
        return Good(request);
      },
      {.max_records = 2, .linger = 20'000ms}, {}, 2);
  const auto calls = CallAll({"1", "2", "3", "4", "5", "6"});
  ASSERT_TRUE(WaitUntil(10s, [&] { return server_->requests().size() == 2; }));
  runner_->Tune(3, 0);
  ASSERT_TRUE(WaitUntil(10s, [&] { return server_->requests().size() == 3; }));
  server_->Release();
  for (const std::uint64_t id : calls) EXPECT_EQ(ClassOf(id), "success");
  EXPECT_EQ(server_->most_at_once(), 3);
}

TEST_F(HttpBatches, WaitForTheirTurnByARateThatCanBeRaised) {
  HttpHandlerOptions options;
  options.rate_limit = 0.001;
  Serve(Good, {.max_records = 2, .linger = 20'000ms}, options);
  const auto calls = CallAll({"1", "2", "3", "4"});
  EXPECT_EQ(ClassOf(calls[1]), "success");
  EXPECT_THAT(server_->requests(), SizeIs(1));
  runner_->Tune(8, 1000);
  for (const std::uint64_t id : calls) EXPECT_EQ(ClassOf(id), "success");
}

}  // namespace
}  // namespace fencepost::consumer
