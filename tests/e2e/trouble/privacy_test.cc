// What a worker says of a record that cannot be processed, and to whom.
#include <map>
#include <random>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"
#include "tests/support/mysql_server.h"
#include "tests/support/sqlite_file.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCard = "4111-1111-1111-1111";
constexpr const char* kNumber = "4111111111111111111111";

class Privacy : public TroubleTest {
 protected:
  static void ExpectNothingOfTheCard(WorkerProcess& worker) {
    const auto no_card = AllOf(Not(HasSubstr("4111-")), Not(HasSubstr("411111111")));
    for (const char* path : {"/", "/status", "/metrics", "/fragment", "/ready"}) {
      EXPECT_THAT(worker.Get(path).body, no_card) << path;
    }
    // What programs write to stderr is meant for the log.
    std::istringstream log(worker.Log());
    for (std::string line; std::getline(log, line);) {
      if (line.find("handler_stderr") != std::string::npos) continue;
      EXPECT_THAT(line, no_card);
    }
  }
  // Of all that was traced.
  void ExpectNothingOfTheCardInSpans() {
    std::string spans;
    for (const auto& request : collector_.requests()) spans += request.body;
    EXPECT_THAT(spans, Not(AnyOf(HasSubstr("4111-"), HasSubstr("411111111"))));
  }
  static std::string ErrorOf(const TestRecord& letter) {
    return letter.Header("fencepost-error").value_or("");
  }

  const StubServer collector_{[](const StubServer::Request&) { return StubServer::Answer(); }};
};

// Letters that no compression makes fewer of.
std::string Noise(std::size_t bytes) {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < bytes) text.push_back(static_cast<char>('a' + random() % 26));
  return text;
}

enum class Into { kPostgres, kMysql, kSqlite, kKafka };

// A way in which {"order_id":"a0","amount":1,"card":"4111-…"} fails. TOPIC, SERVICE, CARD and
// PROGRAM stand for what they are in the test.
struct Way {
  const char* name;
  const char* logged;        // what the log then says
  const char* section = "";  // of the pipeline file
  const char* program = "";  // what an `exec` handler does with the record and its card
  Into into = Into::kPostgres;
  const char* column = "";      // of the table's column `card`, where it is filled
  const char* trigger = "";     // what a trigger before the insert does
  const char* output = "";      // keys of output.kafka
  const char* decode = "";      // `kafka.decode`
  const char* record_id = "";   // another than json:/order_id
  std::string value{};          // another
  StubServer::Answer answer{};  // of the service
  bool letter = true;           // it becomes a dead letter, which has the card
  bool quoted = true;           // also in its error
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class RefusedRecord : public Privacy, public ::testing::WithParamInterface<Way> {
 protected:
  RefusedRecord() {
    if (GetParam().into == Into::kMysql) {
      static MysqlServer mysql;
      table_ = std::make_unique<EffectsTable>(mysql, name_);
    } else if (GetParam().into == Into::kSqlite) {
      table_ = std::make_unique<EffectsTable>(files_, name_);
    }
  }

  PipelineText TextOf(const Way& way) {
    PipelineText text = Text(1);
    text.more =
        DeadLetters() +
        fmt::format("observe: {{traces: {{endpoint: \"{}\", sample: 1}}}}\n", collector_.Url("")) +
        "retry: {attempts: 2, give_up_after: 0s, never: [422], "
        "backoff: {initial: 10ms, max: 10ms}}\n" +
        Filled(way.section);
    if (way.program[0] != '\0') text.more += Program(way.program);
    if (way.record_id[0] != '\0') text.record_id = way.record_id;
    text.start_from += Filled(way.decode);
    if (way.column[0] != '\0') text.output = WithItsCard(text, way);
    if (way.into == Into::kKafka) {
      Kafka().admin().CreateTopic(name_ + "-out", 1, {{"max.message.bytes", "200"}});
      text.record_id = "position";
      text.output = Filled(std::string("output:\n  kafka:\n    topic: TOPIC-out\n") + way.output);
    }
    return text;
  }
  [[nodiscard]] std::string Filled(std::string text) const {
    const std::map<std::string, std::string> words = {
        {"TOPIC", name_}, {"SERVICE", stub_.Url("")}, {"CARD", kCard}};
    for (const auto& [word, value] : words) {
      for (std::size_t at = 0; (at = text.find(word)) != std::string::npos;) {
        text.replace(at, word.size(), value);
      }
    }
    return text;
  }

 private:
  std::string Program(const std::string& what) {
    return fmt::format("handler:\n  exec: {{command: [python3, {}], idempotent: true}}\n",
                       folder_.Write("program.py",
                                     "import json, sys\n"
                                     "def say(**reply): print(json.dumps(reply), flush=True)\n"
                                     // In one write: the next record is not sent in between.
                                     "def both(more, **reply):\n"
                                     "    sys.stdout.write(json.dumps(reply) + '\\n' + more)\n"
                                     "    sys.stdout.flush()\n"
                                     "for line in sys.stdin:\n"
                                     "    card = json.loads(line)['value']['card']\n"
                                     "    " +
                                         what + "\n"));
  }
  std::string WithItsCard(const PipelineText& text, const Way& way) {
    table_->Exec(fmt::format("ALTER TABLE effects ADD COLUMN card {}", way.column));
    if (way.trigger[0] != '\0' && way.into == Into::kPostgres) {
      table_->Exec(fmt::format(
          "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} END $$;"
          "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION refuse()",
          way.trigger));
    } else if (way.trigger[0] != '\0') {
      table_->Exec(
          fmt::format("CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW BEGIN"
                      " SET @said = concat('card ', NEW.card, ' is blocked'); {} END",
                      way.trigger));
    }
    const std::string where = !text.mysql.empty() ? "  mysql:\n" + text.mysql
                              : text.dsn.empty() ? "  sqlite:\n    path: " + text.sqlite_path + "\n"
                                                 : "  postgres:\n    dsn: " + text.dsn + "\n";
    return "output:\n" + where +
           "    table: effects\n    columns: {order_id: json:/order_id, amount: json:/amount, "
           "card: json:/card}\n";
  }

  SqliteFiles files_{folder_.path().string()};
  // A service that handles records, and a schema registry.
  StubServer stub_{[](const StubServer::Request& request) {
    StubServer::Answer answer = GetParam().answer;
    if (request.line.starts_with("POST")) return answer;
    const bool avro = request.line.find("/schemas/ids/") != std::string::npos;
    return StubServer::Answer{.body = avro ? kAvro : kProtobuf};
  }};
  static constexpr const char* kAvro =
      R"({"schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[)"
      R"({\"name\":\"order_id\",\"type\":\"string\"},{\"name\":\"card\",\"type\":\"string\"},)"
      R"({\"name\":\"amount\",\"type\":\"int\"}]}"})";
  static constexpr const char* kProtobuf =
      R"({"id":8,"schemaType":"PROTOBUF","schema":"syntax = \"proto3\"; )"
      R"(message R { string order_id = 1; int32 amount = 2; int32 card = 3; }"})";
};

TEST_P(RefusedRecord, IsQuotedInItsDeadLetterAndNowhereElse) {
  const Way& way = GetParam();
  const PipelineText text = TextOf(way);
  // A second one that a handler fails for as well would be an outage, which is waited for.
  const bool handler = way.program[0] != '\0' || way.answer.status != 200;
  const int records = way.letter && handler ? 1 : 2;
  for (int i = 0; i < records; ++i) {
    Send(0, !way.value.empty()
                ? Filled(way.value)
                : fmt::format(R"({{"order_id":"a{}","amount":1,"card":"{}"}})", i, kCard));
  }
  WorkerProcess worker(Worker(text));
  ASSERT_TRUE(WaitUntil(seconds(60), "the log to say why", [&] {
    return worker.Log().find(way.logged) != std::string::npos;
  })) << worker.Log();
  ExpectNothingOfTheCard(worker);
  if (!way.letter) {
    (void)worker.Stop();
    return ExpectNothingOfTheCardInSpans();
  }
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  ExpectNothingOfTheCard(worker);
  EXPECT_EQ(worker.Stop(), 0);
  EXPECT_FALSE(collector_.requests().empty());
  ExpectNothingOfTheCardInSpans();
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), static_cast<std::size_t>(records));
  EXPECT_THAT(letters[0].value.value_or(""), AnyOf(HasSubstr(kCard), HasSubstr(kNumber)));
  EXPECT_EQ(ErrorOf(letters[0]).find("4111") != std::string::npos, way.quoted)
      << ErrorOf(letters[0]);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, RefusedRecord,
    ::testing::Values(
        Way{.name = "ByAJqProgram",
            .logged = "the program failed on the value",
            .section = "handler: {jq: '.card | error'}\n"},
        Way{.name = "ByAProgramThatDies", .logged = "before it replied", .program = "int(card)"},
        Way{.name = "ByAProgramThatSaysWhy",
            .logged = "the program refused the record",
            .program = "say(error='no such card: ' + card, retry=False)"},
        Way{.name = "ByAProgramWhoseClassIsText",
            .logged = "class is neither a word",
            .program = "say(error='no', **{'class': 'no card ' + card})"},
        Way{.name = "ByAProgramThatPrintsNoReply",
            .logged = "the reply cannot be read",
            .program = "print('checking', card, flush=True)"},
        Way{.name = "ByAProgramThatAnswersForAnother",
            .logged = "its record_id is not that of the record",
            .program = "say(record_id=card, value=1)"},
        Way{.name = "ByAProgramThatPrintsUnasked",
            .logged = "that nobody had asked for",
            .program = "both(card + '\\n', value={'order_id': 'a', 'amount': 1})",
            .letter = false},
        Way{.name = "ByAProgramThatPrintsALinesBeginningUnasked",
            .logged = "that nobody had asked for",
            .program = "both(card, value={'order_id': 'a', 'amount': 1})",
            .letter = false},
        Way{.name = "ByAPostgresTrigger",
            .logged = "raise_exception in function refuse()",
            .column = "varchar(40)",
            .trigger = "RAISE EXCEPTION 'card % is blocked', NEW.card;"},
        Way{.name = "ByAPostgresTriggerThatHasItWait",
            .logged = "object_not_in_prerequisite_state",
            .column = "varchar(40)",
            .trigger = "RAISE EXCEPTION 'card % waits', NEW.card USING ERRCODE = '55000';",
            .letter = false},
        Way{.name = "ByAMysqlTrigger",
            .logged = "a trigger refused the row (SQLSTATE 45000)",
            .into = Into::kMysql,
            .column = "varchar(40)",
            .trigger = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = @said;"},
        Way{.name = "ByAMysqlTriggerThatHasItWait",
            .logged = "a trigger refused the row (SQLSTATE 55000)",
            .into = Into::kMysql,
            .column = "varchar(40)",
            .trigger = "SIGNAL SQLSTATE '55000' SET MESSAGE_TEXT = @said;",
            .letter = false},
        Way{.name = "ByAMysqlTriggerWithACodeOfTheServers",
            .logged = "(error 1264, SQLSTATE 22003)",
            .into = Into::kMysql,
            .column = "varchar(40)",
            .trigger = "SIGNAL SQLSTATE '22003' SET MYSQL_ERRNO = 1264, MESSAGE_TEXT = @said;"},
        Way{.name = "ByAMysqlTriggerThatSignalsAgain",
            .logged = "(error 1366, SQLSTATE HY000)",
            .into = Into::kMysql,
            .column = "varchar(40)",
            .trigger = "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL SQLSTATE 'HY000'"
                       " SET MYSQL_ERRNO = 1366, MESSAGE_TEXT = @said;"
                       " SIGNAL SQLSTATE '45000'; END;"},
        Way{.name = "ByAPostgresType",
            .logged = "column card (uuid) from json:/card",
            .column = "uuid"},
        Way{.name = "ByAnSqliteCheck",
            .logged = "CHECK constraint failed",
            .into = Into::kSqlite,
            .column = "text CHECK (card NOT LIKE '4%')",
            .quoted = false},
        Way{.name = "ByAJqProgramThatWouldChangeANumber",
            .logged = "published as a dead letter: bad_record",
            .section = "handler: {jq: .}\n",
            .value = std::string(R"({"order_id":"a0","card":)") + kNumber + "}"},
        Way{.name = "ByAPartThatIsMissing",
            .logged = "json:/card/number finds nothing in the value",
            .section = "handler: {take: json:/card/number}\n",
            .quoted = false},
        Way{.name = "ByTheSelectorOfItsId",
            .logged = "no record id: json:/card/number finds nothing",
            .record_id = "json:/card/number",
            .quoted = false},
        Way{.name = "ByAValueThatIsNotJson",
            .logged = "the value is not valid JSON: it is cut off",
            .value = R"({"order_id":"a0","card":"CARD")",
            .quoted = false},
        Way{.name = "ByItsDecoding",
            .logged = "the value (schema 7) is cut off",
            .decode = "\n  decode: {value: avro, registry: {url: \"SERVICE\"}}",
            .value = std::string("\0\0\0\0\7", 5) + "\4a0&CARD",
            .quoted = false},
        Way{.name = "ByItsEncoding",
            .logged = "the value does not fit its schema: is no message R",
            .into = Into::kKafka,
            .output = "    encode: {value: {format: protobuf}, registry: {url: \"SERVICE\"}}\n"},
        Way{.name = "ByATopicThatTakesNoLargeRecords",
            .logged = "published as a dead letter: ",
            .into = Into::kKafka,
            .value = R"({"card":"CARD","more":")" + Noise(1000) + "\"}",
            .quoted = false},
        Way{.name = "ByTheAnswerOfAService",
            .logged = "HTTP 422",
            .section = "handler: {http: {url: SERVICE, idempotent: true}}\n",
            .answer = {.status = 422, .body = std::string("no such card: ") + kCard}},
        Way{.name = "ByAnAnswerThatIsNotDecoded",
            .logged = "Content-Encoding is unknown",
            .section = "handler: {http: {url: SERVICE, idempotent: true}}\n",
            .answer = {.body = "?", .headers = {std::string("Content-Encoding: ") + kCard}},
            .letter = false}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(Privacy, AWorkerThatStopsAtARecordNamesItsPlaceAndNotItsContent) {
  const PipelineText text = Text(1);
  Send(0, fmt::format(R"({{"order_id":"a1","amount":"{}"}})", kCard));
  WorkerProcess worker(Worker(text));
  ASSERT_EQ(worker.Wait(seconds(40)), 1) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr(name_ + "/0/0"));
  EXPECT_THAT(worker.Log(), Not(HasSubstr("4111-")));
}

// At the default limits of the broker and of librdkafka.
TEST_F(Privacy, ALargeValueThatATableRefusesBecomesADeadLetter) {
  PipelineText text = Text(1);
  text.more = DeadLetters();
  Send(0, R"({"order_id":"a1","amount":")" + std::string(600'000, 'x') + "\"}");
  Send(0, R"({"order_id":"a2","amount":2})");
  WorkerProcess worker(Worker(text));
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0);
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_LE(ErrorOf(letters[0]).size(), 1000u);
}

}  // namespace
}  // namespace fencepost::testing
