// What a worker says of a record that cannot be processed, and to whom.
#include <sstream>

#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"
#include "tests/support/mysql_server.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCard = "4111-1111-1111-1111";

class Privacy : public TroubleTest {
 protected:
  static void ExpectNothingOfTheCard(WorkerProcess& worker) {
    for (const char* path : {"/", "/status", "/metrics", "/fragment", "/ready"}) {
      EXPECT_THAT(worker.Get(path).body, Not(HasSubstr("4111-"))) << path;
    }
    // What programs write to stderr is meant for the log.
    std::istringstream log(worker.Log());
    for (std::string line; std::getline(log, line);) {
      if (line.find("handler_stderr") != std::string::npos) continue;
      EXPECT_THAT(line, Not(HasSubstr("4111-")));
    }
  }
  static std::string ErrorOf(const TestRecord& letter) {
    return letter.Header("fencepost-error").value_or("");
  }
};

// A way in which {"order_id":"a1","amount":1,"card":"4111-…"} fails.
struct Way {
  const char* name;
  const char* logged;         // what the log then says
  const char* section;        // of the pipeline file, or
  const char* program = "";   // what an `exec` handler does with the record and its card, or
  const char* postgres = "";  // what a trigger before the insert does, or
  const char* mysql = "";
  bool letter = true;  // it becomes a dead letter, which has the card
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class RefusedRecord : public Privacy, public ::testing::WithParamInterface<Way> {
 protected:
  RefusedRecord() {
    if (GetParam().mysql[0] == '\0') return;
    static MysqlServer mysql;
    table_ = std::make_unique<EffectsTable>(mysql, name_);
  }

  PipelineText TextOf(const Way& way) {
    PipelineText text = Text(1);
    text.more = DeadLetters() +
                "retry: {attempts: 2, give_up_after: 0s, backoff: {initial: 10ms, max: 10ms}}\n" +
                way.section;
    if (way.program[0] != '\0') text.more += Program(way.program);
    if (way.section[0] == '\0' && way.program[0] == '\0') text.output = Triggered(text, way);
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
  std::string Triggered(const PipelineText& text, const Way& way) {
    table_->Exec("ALTER TABLE effects ADD COLUMN card varchar(40)");
    if (table_->kind() == SqlServer::Kind::kPostgres) {
      table_->Exec(fmt::format(
          "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} END $$;"
          "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION refuse()",
          way.postgres));
    } else {
      table_->Exec(
          fmt::format("CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW BEGIN"
                      " SET @said = concat('card ', NEW.card, ' is blocked'); {} END",
                      way.mysql));
    }
    const std::string where =
        text.mysql.empty() ? "  postgres:\n    dsn: " + text.dsn + "\n" : "  mysql:\n" + text.mysql;
    return "output:\n" + where +
           "    table: effects\n    columns: {order_id: json:/order_id, amount: json:/amount, "
           "card: "
           "json:/card}\n";
  }
};

TEST_P(RefusedRecord, IsQuotedInItsDeadLetterAndNowhereElse) {
  const Way& way = GetParam();
  const PipelineText text = TextOf(way);
  // A second one that a program fails for as well would be an outage, which is waited for.
  const int records = way.letter && way.program[0] != '\0' ? 1 : 2;
  for (int i = 0; i < records; ++i) {
    Send(0, fmt::format(R"({{"order_id":"a{}","amount":1,"card":"{}"}})", i, kCard));
  }
  WorkerProcess worker(Worker(text));
  ASSERT_TRUE(WaitUntil(seconds(60), "the log to say why", [&] {
    return worker.Log().find(way.logged) != std::string::npos;
  })) << worker.Log();
  ExpectNothingOfTheCard(worker);
  if (!way.letter) return;
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  ExpectNothingOfTheCard(worker);
  EXPECT_EQ(worker.Stop(), 0);
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), static_cast<std::size_t>(records));
  EXPECT_THAT(ErrorOf(letters[0]), HasSubstr(kCard));
}

INSTANTIATE_TEST_SUITE_P(
    Ways, RefusedRecord,
    ::testing::Values(
        Way{.name = "ByAJqProgram",
            .logged = "the program failed on the value",
            .section = "handler: {jq: '.card | error'}\n"},
        Way{.name = "ByAProgramThatDies",
            .logged = "before it replied",
            .section = "",
            .program = "int(card)"},
        Way{.name = "ByAProgramThatSaysWhy",
            .logged = "the program refused the record",
            .section = "",
            .program = "say(error='no such card: ' + card, retry=False)"},
        Way{.name = "ByAProgramWhoseClassIsText",
            .logged = "class is neither a word",
            .section = "",
            .program = "say(error='no', **{'class': 'no card ' + card})"},
        Way{.name = "ByAProgramThatPrintsNoReply",
            .logged = "the reply cannot be read",
            .section = "",
            .program = "print('checking', card, flush=True)"},
        Way{.name = "ByAProgramThatAnswersForAnother",
            .logged = "its record_id is not that of the record",
            .section = "",
            .program = "say(record_id=card, value=1)"},
        Way{.name = "ByAProgramThatPrintsUnasked",
            .logged = "that nobody had asked for",
            .section = "",
            .program = "both(card + '\\n', value={'order_id': 'a', 'amount': 1})",
            .letter = false},
        Way{.name = "ByAProgramThatPrintsALinesBeginningUnasked",
            .logged = "that nobody had asked for",
            .section = "",
            .program = "both(card, value={'order_id': 'a', 'amount': 1})",
            .letter = false},
        Way{.name = "ByAPostgresTrigger",
            .logged = "raise_exception in function refuse()",
            .section = "",
            .postgres = "RAISE EXCEPTION 'card % is blocked', NEW.card;"},
        Way{.name = "ByAPostgresTriggerThatHasItWait",
            .logged = "object_not_in_prerequisite_state",
            .section = "",
            .postgres = "RAISE EXCEPTION 'card % waits', NEW.card USING ERRCODE = '55000';",
            .letter = false},
        Way{.name = "ByAMysqlTrigger",
            .logged = "a trigger refused the row (SQLSTATE 45000)",
            .section = "",
            .mysql = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = @said;"},
        Way{.name = "ByAMysqlTriggerThatHasItWait",
            .logged = "a trigger refused the row (SQLSTATE 55000)",
            .section = "",
            .mysql = "SIGNAL SQLSTATE '55000' SET MESSAGE_TEXT = @said;",
            .letter = false},
        Way{.name = "ByAMysqlTriggerWithACodeOfTheServers",
            .logged = "(error 1264, SQLSTATE 22003)",
            .section = "",
            .mysql = "SIGNAL SQLSTATE '22003' SET MYSQL_ERRNO = 1264, MESSAGE_TEXT = @said;"},
        Way{.name = "ByAMysqlTriggerThatSignalsAgain",
            .logged = "(error 1366, SQLSTATE HY000)",
            .section = "",
            .mysql = "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL SQLSTATE 'HY000'"
                     " SET MYSQL_ERRNO = 1366, MESSAGE_TEXT = @said;"
                     " SIGNAL SQLSTATE '45000'; END;"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(Privacy, TheAnswerOfAServiceThatRefusesIsQuotedInTheDeadLetterAndNowhereElse) {
  StubServer service([](const StubServer::Request&) {
    return StubServer::Answer{.status = 422, .body = std::string("no such card: ") + kCard};
  });
  PipelineText text = Text(1);
  text.more = DeadLetters() + fmt::format("handler:\n  http: {{url: \"{}\", idempotent: true}}\n",
                                          service.Url("/charge"));
  SendOrder(0, "a1", "k");
  WorkerProcess worker(Worker(text));
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("HTTP 422"));
  ExpectNothingOfTheCard(worker);
  EXPECT_EQ(worker.Stop(), 0);
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_THAT(ErrorOf(letters[0]), HasSubstr(kCard));
}

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
