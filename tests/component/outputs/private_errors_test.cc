// What is said of a refused record: all of it to its dead letter, nothing of it to everybody.
#include <gmock/gmock.h>

#include "consumer/outputs/failure_text.h"
#include "tests/component/outputs/postgres_fixture.h"
#include "tests/component/outputs/sqlite_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCard = "4111-1111-1111-1111";

WriteOutcome Refused(Output& output, const std::string& value, const std::string& id = "b") {
  const Batch batch{{.id = id, .offset = 1, .value = value}};
  const auto outcomes = WriteAll(output, batch);
  if (!outcomes) {
    ADD_FAILURE() << outcomes.error().error.Line();
    return {};
  }
  EXPECT_EQ(outcomes->at(0).result, WriteResult::kBadRecord);
  return outcomes->at(0);
}

class PostgresPrivacy : public PostgresTest {
 protected:
  // A record {"order_id":"x","v":VALUE} into a table with a column v of this type.
  WriteOutcome Into(const std::string& type, const std::string& value) {
    Exec("DROP TABLE IF EXISTS n; CREATE TABLE n (order_id text, v " + type + ")");
    return Refused(*Open("n", {{"order_id", "json:/order_id"}, {"v", "json:/v"}}),
                   fmt::format(R"({{"order_id":"x","v":"{}"}})", value));
  }
};

TEST_F(PostgresPrivacy, AValueOfTheWrongTypeIsQuotedToItsDeadLetterAlone) {
  for (const char* type : {"integer", "numeric", "timestamptz"}) {  // refused before they are sent
    const WriteOutcome outcome = Into(type, kCard);
    EXPECT_THAT(outcome.shown, AllOf(Not(HasSubstr("4111")), HasSubstr("column v"))) << type;
  }
  for (const char* type : {"uuid", "inet", "boolean"}) {
    const WriteOutcome outcome = Into(type, kCard);
    EXPECT_THAT(outcome.detail, HasSubstr(kCard)) << type;
    EXPECT_THAT(outcome.shown, AllOf(Not(HasSubstr("4111")), HasSubstr("SQLSTATE 22"))) << type;
  }
  EXPECT_EQ(Into("uuid", kCard).shown,
            "column v (uuid) from json:/v: invalid input syntax for type uuid: … "
            "(SQLSTATE 22P02)");
}

TEST_F(PostgresPrivacy, AValueThatSpeaksAsTheLedgerDoesIsRefusedAsAnyOther) {
  for (const char* type : {"uuid", "boolean"}) {
    const WriteOutcome outcome = Into(type, "fencepost: the ledger took 1");
    EXPECT_THAT(outcome.detail, HasSubstr("the ledger took")) << type;
  }
}

TEST_F(PostgresPrivacy, AConstraintIsNamedAndItsRowIsNot) {
  const WriteOutcome checked = Into("text CONSTRAINT no_cards CHECK (v !~ '^4')", kCard);
  EXPECT_THAT(checked.detail, HasSubstr(kCard));
  EXPECT_EQ(checked.shown,
            "new row for relation … (SQLSTATE 23514, table public.n, constraint no_cards)");
  const WriteOutcome missing = Into("text, w text CONSTRAINT has_w CHECK (w IS NOT NULL)", kCard);
  EXPECT_THAT(missing.detail, HasSubstr(kCard));
  EXPECT_THAT(missing.shown, AllOf(Not(HasSubstr("4111")), HasSubstr("constraint has_w")));
}

TEST_F(PostgresPrivacy, WhatATriggerRaisesIsToldByItsFunctionAlone) {
  Exec(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " RAISE EXCEPTION 'no order of % here', NEW.order_id USING SCHEMA = NEW.order_id,"
      " TABLE = NEW.order_id, COLUMN = NEW.order_id, DATATYPE = NEW.order_id,"
      " CONSTRAINT = NEW.order_id, HINT = NEW.order_id; END $$;"
      "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION refuse()");
  const WriteOutcome outcome =
      Refused(*Open(), fmt::format(R"({{"order_id":"{}","amount":1}})", kCard));
  EXPECT_THAT(outcome.detail, HasSubstr(std::string("no order of ") + kCard));
  EXPECT_EQ(outcome.shown, "raise_exception in function refuse() (SQLSTATE P0001)");
}

TEST_F(PostgresPrivacy, WhatIsSaidOfALargeValueStaysSmall) {
  const WriteOutcome outcome = Into("uuid", std::string(600'000, 'x'));
  EXPECT_LE(outcome.detail.size(), kMaxErrorText);
  EXPECT_THAT(outcome.detail, HasSubstr("xxxx"));
  EXPECT_LE(outcome.shown.size(), kMaxErrorText);
}

TEST_F(PostgresPrivacy, AConflictOfContentIsToldWithoutTheId) {
  const auto output = Open();
  const Batch first{{.id = kCard, .offset = 1, .crc = 1}};
  const Batch other{{.id = kCard, .offset = 2, .crc = 2}};
  ASSERT_EQ(Results(*output, first), All(1, WriteResult::kCommitted));
  const auto outcome = WriteAll(*output, other)->at(0);
  EXPECT_THAT(outcome.detail, HasSubstr(kCard));
  EXPECT_THAT(outcome.shown, AllOf(Not(HasSubstr("4111")), HasSubstr("orders/3/1")));
}

TEST_F(SqliteTest, SaysOfARefusedRowWhatRefusedIt) {
  Exec("CREATE TABLE n (order_id text, v integer CONSTRAINT small CHECK (v < 10)) STRICT");
  const auto output = Open("n", {{"order_id", "json:/order_id"}, {"v", "json:/v"}});
  EXPECT_EQ(Refused(*output, R"({"order_id":"x","v":4111})").shown,
            "CHECK constraint failed: small");
  const WriteOutcome text = Refused(*output, fmt::format(R"({{"order_id":"x","v":"{}"}})", kCard));
  EXPECT_THAT(text.shown, AllOf(Not(HasSubstr("4111")), HasSubstr("column v")));
}

}  // namespace
}  // namespace fencepost::consumer
