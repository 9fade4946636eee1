// The example `cdc` as it is printed, with nothing but the addresses replaced: Debezium's envelopes
// of a table's changes become a copy that equals the table.
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "tests/support/kafka_group.h"
#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

// FENCEPOST_CHANGES=100000 is the long run.
int Changes() {
  const char* const text = std::getenv("FENCEPOST_CHANGES");
  return text == nullptr ? 20'000 : std::atoi(text);
}
constexpr int kRows = 2000;

// Random changes of a table, and what Debezium 3's JSON converter writes of them.
class Source {
 public:
  Source(std::string bootstrap, std::string topic)
      : bootstrap_(std::move(bootstrap)), topic_(std::move(topic)) {}

  void SetPartitions(int partitions) { partitions_ = partitions; }
  // Changes of rows that are chosen at random: new ones, some columns of those that are there, new
  // keys, deletions.
  void Change(int times) {
    TestProducer producer(bootstrap_);
    while (times > 0) {
      const int id = static_cast<int>(random_() % kRows);
      if (out_.contains(id)) continue;
      ChangeOne(producer, id);
      --times;
    }
    producer.Flush();
  }
  // One change, to a name of one's own.
  void Rename(int id, const std::string& name) {
    TestProducer producer(bootstrap_);
    Row row = rows_.contains(id) ? rows_[id] : NewRow();
    row.name = name;
    row.bio = "bio of " + name;
    Upsert(producer, id, row);
    producer.Flush();
  }
  // These rows change no more.
  void KeepOut(std::set<int> ids) { out_ = std::move(ids); }
  // As Copy() in the test reads the copy: a line a row.
  [[nodiscard]] std::string Expected() const {
    std::string all;
    for (const auto& [id, row] : rows_) {
      all += fmt::format("{0}|{1}|{2}|{3}|{3}|{4}|{5}|{6}\n", id, row.name, row.email.value_or("-"),
                         row.bio, Decimal(row.cents), row.born, row.updated_at);
    }
    return all;
  }

 private:
  struct Row {
    std::string name;
    std::optional<std::string> email;
    std::string bio;  // kept out of line: it comes only where it changes; in `settings`, too
    std::int64_t cents = 0;
    int born = 0;                 // days since 1970
    std::int64_t updated_at = 0;  // microseconds
  };

  Row NewRow() {
    return {.name = fmt::format("n {}", lsn_),
            .email = std::nullopt,
            .bio = fmt::format("bio of {} é", lsn_),
            .cents = Cents(),
            .born = static_cast<int>(random_() % 40'000) - 10'000,
            .updated_at = Now()};
  }
  std::int64_t Cents() {
    return static_cast<std::int64_t>(random_() % 2'000'000'000'000) - 1'000'000'000'000;
  }
  std::int64_t Now() const { return 1'735'689'600'000'000 + lsn_; }

  void ChangeOne(TestProducer& producer, int id) {
    const auto found = rows_.find(id);
    if (found == rows_.end()) return Upsert(producer, id, NewRow());
    const auto dice = random_() % 20;
    if (dice == 0) return Delete(producer, id);
    if (dice == 1) {  // a new key is a deletion and a new row
      const Row row = found->second;
      Delete(producer, id);
      id = kRows + id;
      return Upsert(producer, id, row);
    }
    Row row = found->second;
    row.updated_at = Now();
    if (dice % 4 == 0) row.name = fmt::format("n {}", lsn_);
    if (dice % 4 == 1) row.email = random_() % 3 == 0 ? std::nullopt : std::optional("e@x");
    if (dice % 4 == 2) row.cents = Cents();
    if (dice % 4 == 3) row.born += 1;
    if (dice == 19) row.bio = fmt::format("bio of {}", lsn_);
    Upsert(producer, id, row);
  }

  void Upsert(TestProducer& producer, int id, const Row& row) {
    const auto found = rows_.find(id);
    const bool had = found != rows_.end();
    const bool same_bio = had && found->second.bio == row.bio;
    Send(producer, id, had ? "u" : "c", After(id, row, same_bio));
    rows_[id] = row;
  }
  void Delete(TestProducer& producer, int id) {
    Send(producer, id, "d", "null");
    SendRecord(producer, id, std::nullopt);
    rows_.erase(id);
  }

  static std::string After(int id, const Row& row, bool same_bio) {
    constexpr const char* kUnavailable = "__debezium_unavailable_value";
    return fmt::format(
        R"({{"id":{},"name":"{}","email":{},"bio":"{}","settings":"{}","balance":"{}","born":{},)"
        R"("updated_at":{}}})",
        id, row.name, row.email ? "\"" + *row.email + "\"" : "null",
        same_bio ? kUnavailable : row.bio,
        same_bio ? kUnavailable : fmt::format(R"({{\"bio\": \"{}\"}})", row.bio), Base64(row.cents),
        row.born, row.updated_at);
  }
  void Send(TestProducer& producer, int id, const char* op, const std::string& after) {
    lsn_ += 8 + static_cast<std::int64_t>(random_() % 90);
    SendRecord(producer, id,
               fmt::format(R"({{"before":null,"after":{},"source":{{"version":"3.0.0.Final",)"
                           R"("connector":"postgresql","ts_ms":{},"ts_us":{},"ts_ns":{},)"
                           R"("snapshot":"false","table":"customers","txId":7,"lsn":{}}},)"
                           R"("transaction":null,"op":"{}","ts_ms":{},"ts_us":{},"ts_ns":{}}})",
                           after, Now() / 1000, Now(), Now() * 1000 + 789, lsn_, op, Now() / 1000,
                           Now(), Now() * 1000 + 123));
  }
  void SendRecord(TestProducer& producer, int id, std::optional<std::string> value) {
    producer.Send(topic_, id % partitions_, fmt::format(R"({{"id":{}}})", id), std::move(value));
  }

  // The bytes of a whole number in two's complement, as few as there can be.
  static std::string Base64(std::int64_t number) {
    std::string bytes;
    do {
      bytes.insert(bytes.begin(), static_cast<char>(number & 0xff));
      number >>= 8;
    } while (
        !((number == 0 && (bytes[0] & 0x80) == 0) || (number == -1 && (bytes[0] & 0x80) != 0)));
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
      std::uint32_t three = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        const bool there = at + i < bytes.size();
        three = three << 8 | (there ? static_cast<unsigned char>(bytes[at + i]) : 0U);
      }
      for (std::size_t i = 0; i < 4; ++i) {
        text += at + i > bytes.size() ? '=' : kDigits[three >> (18 - 6 * i) & 63];
      }
    }
    return text;
  }
  static std::string Decimal(std::int64_t cents) {
    const std::int64_t size = std::abs(cents);
    return fmt::format("{}{}.{:02}", cents < 0 ? "-" : "", size / 100, size % 100);
  }

  const std::string bootstrap_;
  const std::string topic_;
  int partitions_ = 1;
  std::mt19937_64 random_{7};
  std::map<int, Row> rows_;
  std::set<int> out_;
  std::int64_t lsn_ = 9'007'199'254'740'993;  // beyond what a double holds
};

void Replace(std::string& text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what << " is not in the example";
  text.replace(at, what.size(), with);
}

class Cdc : public PipelineTest {
 protected:
  // The example as it is printed, over this test's topic and table.
  std::string File(int partitions) {
    Kafka().CreateTopic(name_, partitions);
    Kafka().CreateTopic(name_ + ".dead", 1);
    table_->Exec("DROP TABLE IF EXISTS customers");
    table_->Exec(
        "CREATE TABLE customers (id bigint PRIMARY KEY, name text, email text, bio text,"
        " settings jsonb, balance numeric(20, 2), born date, updated_at timestamptz, lsn bigint)");
    std::string text = ReadFile(SourcePath("config/examples/cdc.yaml"));
    Replace(text, "name: customers-cdc", "name: " + name_);
    Replace(text, "[shop.public.customers]", "[" + name_ + "]");
    Replace(text, "topic: shop.public.customers.dead", "topic: " + name_ + ".dead");
    Replace(text, "127.0.0.1:9092", Kafka().bootstrap());
    Replace(text, "[127.0.0.1:6379]", "[" + Nodes().list() + "]");
    Replace(text, "lock:\n", "lock:\n  ttl: 3s\n  min_validity: 1s\n  max_skew: 2s\n");
    Replace(text, "${COPY_DSN:-postgresql://app@127.0.0.1/copy}", table_->dsn());
    Replace(text, "record_id: position",
            "  librdkafka: {session.timeout.ms: 4000, heartbeat.interval.ms: 500,"
            " topic.metadata.refresh.interval.ms: 1000}\n"
            "record_id: position");
    return folder_.Write("cdc.yaml", text);
  }
  // A change of each of the ids 0 to 19.
  void ChangeAll(const std::string& name, int partitions) {
    TestProducer producer(Kafka().bootstrap());
    for (int id = 0; id < 20; ++id) {
      producer.Send(name_, id % partitions, fmt::format(R"({{"id":{}}})", id),
                    fmt::format(R"({{"before":null,"after":{{"id":{},"name":"{}","updated_at":0}},)"
                                R"("source":{{"lsn":{}}},"op":"u"}})",
                                id, name, ++lsn_));
    }
    producer.Flush();
  }
  ::testing::AssertionResult AllDone(const WorkerTeam& team) {
    auto done = WaitUntil(seconds(120), "all offsets to be committed",
                          [&] { return CommittedToTheEnd(Kafka(), name_, name_); });
    return done ? done : done << team.Tails();
  }
  // As "Recreating a topic on purpose" in deploy/operations/kafka.md says.
  void MakeTopicAgain(const std::string& file, int partitions) {
    const auto ends = Kafka().admin().EndOffsets(name_);
    DeleteGroup(Kafka().bootstrap(), name_);
    Kafka().admin().DeleteTopic(name_);
    Kafka().CreateTopic(name_, partitions);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i] == 0) continue;
      const Finished forgotten =
          RunFencepost({"forget", file, "--topic", name_, "--partition", std::to_string(i),
                        "--from", "0", "--to", std::to_string(ends[i] - 1), "--execute"});
      EXPECT_EQ(forgotten.exit_code, 0) << forgotten.error_output;
    }
  }
  // A line a row, as Source::Expected.
  std::string Copy() {
    return table_->Value(
        "SELECT string_agg(concat_ws('|', id, name, coalesce(email, '-'), bio,"
        " settings->>'bio', balance,"
        " born - date '1970-01-01', (extract(epoch from updated_at) * 1000000)::bigint)"
        " || E'\\n', '' ORDER BY id) FROM customers");
  }
  ::testing::AssertionResult AllAre(const std::string& name) {
    return WaitUntil(seconds(60), "20 rows to be " + name, [&] {
      return table_->Value("SELECT count(*) FROM customers WHERE name = '" + name + "'") == "20";
    });
  }

  int lsn_ = 0;
};

TEST_F(Cdc, ChangesBehindAddedPartitionsAreNotTakenForOldOnes) {
  WorkerTeam team({.files = {File(2)}});
  team.Start(1);
  for (const char* name : {"v0", "v1", "v2", "v3", "v4"}) ChangeAll(name, 2);
  ASSERT_TRUE(AllAre("v4")) << team.Tails();
  Kafka().admin().AddPartitions(name_, 5);
  ChangeAll("NEW", 5);
  EXPECT_TRUE(AllAre("NEW")) << table_->Value("SELECT string_agg(name, ' ') FROM customers")
                             << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
}

TEST_F(Cdc, ChangesInATopicThatWasMadeAgainAreNotTakenForOldOnes) {
  const std::string file = File(2);
  {
    WorkerTeam team({.files = {file}});
    team.Start(1);
    for (const char* name : {"v0", "v1", "v2"}) ChangeAll(name, 2);
    ASSERT_TRUE(AllAre("v2")) << team.Tails();
    ASSERT_TRUE(AllDone(team));
    EXPECT_EQ(team.StopAll(), "");
  }
  MakeTopicAgain(file, 2);
  ChangeAll("RECREATED", 2);
  WorkerTeam team({.files = {file}});
  team.Start(1);
  EXPECT_TRUE(AllAre("RECREATED")) << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
}

TEST_F(Cdc, ACopyOfATableEqualsItThroughAllThatHappensToIt) {
  const int part = Changes() / 5;
  const std::string file = File(3);
  Source source(Kafka().bootstrap(), name_);
  source.SetPartitions(3);
  table_->Exec("ALTER TABLE customers ADD CONSTRAINT fair CHECK (name <> 'refused')");
  WorkerTeam team({.files = {file}});
  team.Start(2);

  source.Change(part);
  ASSERT_TRUE(WaitUntil(seconds(60), "the copy to begin", [&] {
    return table_->Value("SELECT count(*) > 20 FROM customers") == "t";
  })) << team.Tails();
  team[0].Kill();
  team.Add();

  // Two changes become dead letters: one is followed by another of its row, one is not.
  source.Rename(1, "refused");
  ASSERT_TRUE(AllDone(team));  // in one transaction the table would see the last one alone
  source.Rename(1, "fair");
  source.Rename(2, "refused");
  source.KeepOut({1, 2});
  source.Change(part);
  Postgres().Kill();
  Postgres().Start();
  ASSERT_TRUE(AllDone(team));
  ASSERT_EQ(ReadTopic(Kafka().bootstrap(), name_ + ".dead").size(), 2U) << team.Tails();

  Kafka().admin().AddPartitions(name_, 5);
  source.SetPartitions(5);
  source.Change(part);
  team[1].Kill();
  team.Add();
  source.Change(part);
  ASSERT_TRUE(AllDone(team));

  table_->Exec("ALTER TABLE customers DROP CONSTRAINT fair");
  const Finished replay = RunFencepost({"dlq", "replay", file, "--as-new-id", "--execute"});
  EXPECT_EQ(replay.exit_code, 1) << replay.output << replay.error_output;
  EXPECT_NE(replay.output.find("1 replayed, 1 refused"), std::string::npos) << replay.output;
  ASSERT_TRUE(AllDone(team));
  EXPECT_EQ(team.StopAll(), "");

  MakeTopicAgain(file, 5);
  source.Change(part);
  team.Start(1);
  EXPECT_TRUE(AllDone(team));
  EXPECT_EQ(Copy(), source.Expected());
  EXPECT_EQ(team.StopAll(), "");
}

}  // namespace
}  // namespace fencepost::testing
