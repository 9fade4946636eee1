// README and the pages of deploy/moving-in to the letter: what they show is run on real servers,
// with a bare Redis, which hold what the other program has left. Nothing is replaced but addresses.
#include <cstdlib>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"
#include "tests/support/stub_server.h"

namespace fencepost::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void ReplaceAll(std::string& text, const std::string& what, const std::string& with) {
  ASSERT_NE(text.find(what), std::string::npos) << what << " is not in the page";
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
}

class Pages : public PipelineTest {
 protected:
  // A page of a pipeline that has a topic, a group and a table of this definition.
  void Open(const std::string& page, const std::string& table) {
    Read(page);
    static const bool shop = [] {
      Postgres().Exec("CREATE ROLE app LOGIN");
      Postgres().Exec("CREATE DATABASE shop OWNER app");
      return true;
    }();
    EXPECT_TRUE(shop);
    nodes_ = std::make_unique<RedisServers>(1);
    if (!table.empty()) Postgres().Open("shop", "app")->Exec("CREATE TABLE " + table);
    ReplaceAll(page_, "127.0.0.1:9092", Kafka().bootstrap());
    ReplaceAll(page_, "127.0.0.1:6379", (*nodes_)[0].address());
  }
  void Read(const std::string& page) {
    page_ = ReadFile(testing::SourcePath(page));
    ASSERT_FALSE(page_.empty());
  }
  [[nodiscard]] std::vector<std::string> Blocks(const std::string& kind) const {
    const std::string begin = "\n```" + kind + "\n";
    std::vector<std::string> blocks;
    for (std::size_t at = 0; (at = page_.find(begin, at)) != std::string::npos;) {
      at += begin.size();
      const std::size_t end = page_.find("```\n", at);
      blocks.push_back(page_.substr(at, end - at));
    }
    return blocks;
  }
  // Writes the page's file, which begins with its name, and carries out its commands.
  void Follow() {
    for (const std::string& file : Blocks("yaml")) {
      file_ = folder_.Write(file.substr(2, file.find('\n') - 2), file);
    }
    for (const std::string& block : Blocks("sh")) CarryOut(block);
  }
  // A `run` is worker_ from then on, at another port.
  void CarryOut(const std::string& block) {
    for (const std::string& line : LinesOf(block)) {
      if (line.starts_with("fencepost run ")) {
        const std::string name = std::filesystem::path(file_).filename();
        ASSERT_EQ(line, "fencepost run " + name + " --http 127.0.0.1:9464");
        worker_ = std::make_unique<WorkerProcess>(
            WorkerOptions{.files = {file_}, .name = "worker-1", .env = Port()});
      } else {
        const Finished done = Shell(line);
        EXPECT_EQ(done.exit_code, 0) << line << "\n" << done.output;
      }
    }
  }
  // libpq's, in place of 5432.
  static std::map<std::string, std::string> Port() {
    return {{"PGPORT", std::to_string(Postgres().port())}};
  }
  [[nodiscard]] ProcessOptions InShell(const std::string& line) const {
    const std::string bin = std::filesystem::path(testing::FencepostBinary()).parent_path();
    auto env = Port();
    env["PATH"] = bin + ":" + std::getenv("PATH");
    return {.argv = {"bash", "-c", line}, .env = env, .directory = folder_.path()};
  }
  [[nodiscard]] Finished Shell(const std::string& line) const { return RunToEnd(InShell(line)); }
  // Until the group has read all of it; then the worker ends.
  void Finish(const std::string& group, const std::vector<std::string>& topics) {
    ASSERT_NE(worker_, nullptr);
    for (const std::string& topic : topics) {
      EXPECT_TRUE(WaitUntil(std::chrono::seconds(40), "all of " + topic + " to be committed",
                            [&] { return CommittedToTheEnd(Kafka(), group, topic); }))
          << worker_->Readiness() << worker_->Log();
    }
    EXPECT_EQ(worker_->Stop(), 0) << worker_->Log();
  }
  static void Produce(const std::vector<TestRecord>& records) {
    TestProducer producer(Kafka().bootstrap());
    for (const TestRecord& record : records) producer.Send(record);
    producer.Flush();
  }
  // The first column of each row, or all of it as text.
  static std::vector<std::string> Rows(const std::string& sql) {
    std::vector<std::string> rows;
    for (const auto& row : Postgres().Exec(sql, "shop")) rows.push_back(row[0].value_or("null"));
    return rows;
  }

  std::string page_;
  std::string file_;
  std::unique_ptr<RedisServers> nodes_;
  std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(Pages, TheReadmesPipelineWritesItsFirstRowsOnBareServers) {
  Open("README.md", "");
  Kafka().CreateTopic("orders", 1);
  for (const char* amount : {"12.50", "12.5", "7"}) {
    const char* id = *amount == '7' ? "o-2" : "o-1";
    Produce({{.topic = "orders",
              .value = fmt::format(R"({{"order_id":"{}","amount":{}}})", id, amount),
              .headers = {}}});
  }
  Follow();
  Finish("orders", {"orders"});
  EXPECT_THAT(Rows("SELECT e::text FROM effects e ORDER BY 1"),
              ElementsAre("(o-1,12.50)", "(o-2,7)"));
  Kafka().admin().DeleteTopic("orders");
}

TEST_F(Pages, MovingInFromTheJdbcSinkWritesOverWhatItHadNotCommittedAndGoesOnBehindIt) {
  // As its auto.create makes it.
  Open("deploy/moving-in/connect-jdbc-sink.md",
       R"("orders" ("order_id" TEXT NOT NULL, "amount" DOUBLE PRECISION NULL, "note" TEXT NULL,)"
       R"( PRIMARY KEY("order_id")))");
  Kafka().CreateTopic("orders", 1);
  Kafka().CreateTopic("orders.dead", 1);
  const auto order = [](const std::string& key, std::optional<std::string> value) {
    return TestRecord{.topic = "orders", .key = key, .value = std::move(value), .headers = {}};
  };
  Produce({order("o-0", "what the sink has put away"),
           order("o-1", R"({"amount":1})"),
           order("o-2", R"({"amount":2,"note":"two"})"),
           order("o-1", std::nullopt),
           order("o-3", R"({"amount":3})"),
           {.topic = "orders.dead",
            .key = "o-0",
            .value = "what the sink has put away",
            .headers = {{"__connect.errors.topic", "orders"},
                        {"__connect.errors.partition", "0"},
                        {"__connect.errors.offset", "0"},
                        {"__connect.errors.connector.name", "orders-sink"}}}});
  Postgres().Exec("INSERT INTO orders VALUES ('o-1', 1, NULL), ('o-2', 2, 'two')", "shop");
  Kafka().admin().CommitOffsets("connect-orders-sink", "orders", {2});
  Follow();
  Finish("connect-orders-sink", {"orders"});
  EXPECT_THAT(Rows("SELECT o::text FROM orders o ORDER BY order_id"),
              ElementsAre("(o-2,2,two)", "(o-3,3,)"));
  const Finished list = RunFencepost({"dlq", "list", file_});
  EXPECT_EQ(list.output,
            "0 dead letters in orders.dead, 1 record in the topic is no dead letter of fencepost "
            "but of Kafka Connect: a pipeline that has the topic among its kafka.topics processes "
            "them\n");
}

// As DeadLetterPublishingRecoverer writes it (DeadLetterRecordManager, spring-kafka 4.1): numbers
// are big-endian bytes, texts UTF-8.
TestRecord SpringsLetter(const std::string& topic, std::int64_t offset, const std::string& value) {
  const auto bytes = [](std::int64_t number, int size) {
    std::string text;
    for (int i = size - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i) & 0xff);
    return text;
  };
  return {
      .topic = topic + "-dlt",
      .key = "customer-1",
      .value = value,
      .headers = {{"kafka_dlt-original-topic", topic},
                  {"kafka_dlt-original-partition", bytes(0, 4)},
                  {"kafka_dlt-original-offset", bytes(offset, 8)},
                  {"kafka_dlt-original-timestamp", bytes(1'793'690'000'000, 8)},
                  {"kafka_dlt-original-timestamp-type", "CreateTime"},
                  {"kafka_dlt-original-consumer-group", "shop"},
                  {"kafka_dlt-exception-fqcn",
                   "org.springframework.kafka.listener.ListenerExecutionFailedException"},
                  {"kafka_dlt-exception-cause-fqcn", "java.lang.IllegalStateException"},
                  {"kafka_dlt-exception-message", "Listener failed; payment refused"},
                  {"kafka_dlt-exception-stacktrace", "java.lang.IllegalStateException\n\tat …"}}};
}

TEST_F(Pages, MovingInFromSpringTakesItsDeadLettersInAsRecordsAndDlqNamesThem) {
  StubServer service([](const StubServer::Request& request) {
    const auto id = nlohmann::json::parse(request.body)["payment_id"];
    return StubServer::Answer{.body =
                                  nlohmann::json({{"payment_id", id}, {"status", "paid"}}).dump()};
  });
  Open("deploy/moving-in/spring-kafka.md", "payments (payment_id text, status text)");
  ReplaceAll(page_, "http://127.0.0.1:8080/payments", service.Url("/payments"));
  for (const char* topic : {"payments", "payments-dlt", "payments.dead"}) {
    Kafka().CreateTopic(topic, 1);
  }
  const auto payment = [](int number) {
    return TestRecord{.topic = "payments",
                      .key = "customer-1",
                      .value = fmt::format(R"({{"payment_id":"p-{}"}})", number),
                      .headers = {}};
  };
  Produce({payment(1), payment(2), payment(3), SpringsLetter("payments", 1, *payment(2).value)});
  Kafka().admin().CommitOffsets("shop", "payments", {2});
  Follow();
  Finish("shop", {"payments", "payments-dlt"});
  EXPECT_THAT(Rows("SELECT payment_id || ' ' || status FROM payments ORDER BY 1"),
              ElementsAre("p-2 paid", "p-3 paid"));

  std::string other = ReadFile(file_);
  ReplaceAll(other, "[payments, payments-dlt]", "[payments]");
  ReplaceAll(other, "payments.dead", "payments-dlt");
  const Finished replay =
      RunFencepost({"dlq", "replay", folder_.Write("other.yaml", other), "--execute"});
  EXPECT_THAT(replay.output,
              HasSubstr("0 replayed, 0 refused, 1 record in the topic is no dead letter of "
                        "fencepost but of spring-kafka: a pipeline that has the topic"));
  EXPECT_THAT(RunFencepost({"dlq", "purge", folder_.File("other.yaml"), "--all"}).output,
              HasSubstr("offset 0 stays: it is a dead letter of spring-kafka"));
}

// The metadata is what parallel-consumer 0.5.3.3 commits
// (tests/unit/kafka/foreign_metadata_test.cc) at offset 2 when 2 is unfinished and 3, 4 and 5 are
// finished.
TEST_F(Pages, MovingInFromParallelConsumerProcessesAgainWhatItHadFinishedOutOfOrderAndSaysSo) {
  Open("deploy/moving-in/parallel-consumer.md", "shipments (shipment_id text, city text)");
  Kafka().CreateTopic("shipments", 1);
  Kafka().CreateTopic("shipments.dead", 1);
  for (int i = 0; i < 7; ++i) {
    Produce({{.topic = "shipments",
              .key = fmt::format("k-{}", i),
              .value = fmt::format(R"({{"shipment_id":"s-{}","city":"Bern"}})", i),
              .headers = {}}});
  }
  Postgres().Exec("INSERT INTO shipments SELECT 's-' || i FROM unnest('{0,1,3,4,5}'::int[]) i",
                  "shop");
  Kafka().admin().CommitOffsets("shipping", "shipments", {2}, {"bAAEDgA="});
  Follow();
  Finish("shipping", {"shipments"});
  const auto says = Blocks("text");
  ASSERT_THAT(says, SizeIs(1));
  EXPECT_THAT(worker_->Log(), HasSubstr(LinesOf(says[0])[0]));
  EXPECT_THAT(Rows("SELECT string_agg(shipment_id, ' ' ORDER BY shipment_id) FROM shipments"),
              ElementsAre("s-0 s-1 s-2 s-3 s-3 s-4 s-4 s-5 s-5 s-6"));
}

TEST_F(Pages, MovingInFromRedsyncRunsTheJobUnderALockThatItsOwnDoesNotExclude) {
  nodes_ = std::make_unique<RedisServers>(3);
  Read("deploy/moving-in/redsync.md");
  for (std::size_t node = 0; node < 3; ++node) {
    ReplaceAll(page_, fmt::format("127.0.0.1:700{}", node + 1), (*nodes_)[node].address());
  }
  const auto commands = Blocks("sh");
  ASSERT_THAT(commands, SizeIs(2));
  CarryOut(commands[0]);
  for (std::size_t node = 0; node < 3; ++node) {
    const auto taken =
        (*nodes_)[node].Command({"SET", "nightly-report", "Zm9v", "NX", "PX", "30000"});
    EXPECT_EQ(taken, "OK") << "as redsync does";
  }
  std::filesystem::permissions(
      folder_.Write("report", "#!/bin/sh\necho \"token $FENCEPOST_TOKEN\" >> report.log\n"),
      std::filesystem::perms::owner_all);
  CarryOut(commands[1]);
  EXPECT_THAT(ReadFile(folder_.File("report.log")), MatchesRegex("token [0-9]+\n"));

  std::string longer = commands[1];
  ReplaceAll(longer, "./report", "sh -c 'echo > held; exec sleep 60'");
  Process holder(InShell(longer));
  ASSERT_TRUE(WaitUntil(std::chrono::seconds(20), "the other host to hold the lock", [&] {
    return !ReadFile(folder_.File("held")).empty();
  })) << holder.Output();
  EXPECT_EQ(Shell(commands[1]).exit_code, 75) << "as the example of redsync";
  EXPECT_THAT(LinesOf(ReadFile(folder_.File("report.log"))), SizeIs(1));
}

}  // namespace
}  // namespace fencepost::testing
