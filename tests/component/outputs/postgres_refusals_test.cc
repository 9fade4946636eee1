// Which of PostgreSQL's error codes make one record bad, and which make the batch wait.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using enum WriteResult;

// A table whose trigger raises `code` for the amount 13.
class PostgresRefusalsTest : public PostgresTest {
 protected:
  void RaiseFor13(const std::string& code) const {
    Exec("DROP TRIGGER IF EXISTS t ON effects");
    Exec(
        "CREATE OR REPLACE FUNCTION no_thirteen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF NEW.amount = 13 THEN RAISE EXCEPTION 'not thirteen' USING ERRCODE = '" +
        code +
        "'; END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION no_thirteen()");
  }
};

TEST_F(PostgresRefusalsTest, WhatATriggerRaisesOnPurposeRefusesItsRecordAlone) {
  const auto output = Open();
  int number = 0;
  for (const char* code : {"P0001", "P0002", "P0003", "P0004", "SH001", "99001", "I0000"}) {
    RaiseFor13(code);
    const std::string prefix = fmt::format("r{}-", ++number);
    const Batch batch{{.id = prefix + "a", .offset = 1},
                      {.id = prefix + "b", .offset = 13},
                      {.id = prefix + "c", .offset = 3}};
    EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kBadRecord, kCommitted)) << code;
  }
}

TEST_F(PostgresRefusalsTest, AFailedAssertionRefusesItsRecordAlone) {
  Exec(
      "CREATE FUNCTION no_thirteen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " ASSERT NEW.amount <> 13, 'not thirteen'; RETURN NEW; END $$;"
      "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION no_thirteen()");
  const Batch batch{{.id = "a", .offset = 1}, {.id = "b", .offset = 13}};
  EXPECT_THAT(Results(*Open(), batch), ElementsAre(kCommitted, kBadRecord));
}

TEST_F(PostgresRefusalsTest, PostgresOwnStatesOfTheServerMakeTheBatchWait) {
  const auto output = Open();
  for (const char* code : {"55000", "53100", "57014", "58030", "XX000", "40001", "42501"}) {
    RaiseFor13(code);
    const Batch batch{{.id = "a", .offset = 1}, {.id = "b", .offset = 13}};
    EXPECT_FALSE(output->Write({.items = batch.items(), .offsets = {}})) << code;
  }
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "0");
}

}  // namespace
}  // namespace fencepost::consumer
