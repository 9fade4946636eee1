#include "consumer/outputs/failure_text.h"

#include <gtest/gtest.h>

#include "consumer/outputs/postgres/postgres_connection.h"

namespace fencepost::consumer {
namespace {

TEST(FailureText, EndsWhereAValueCouldBegin) {
  EXPECT_EQ(BeforeQuotes("integer out of range"), "integer out of range");
  EXPECT_EQ(BeforeQuotes("invalid input for type integer: \"4111\""),
            "invalid input for type integer: …");
  EXPECT_EQ(BeforeQuotes("ungültige Eingabe für Typ integer: „4111“"),
            "ungültige Eingabe für Typ integer: …");
  EXPECT_EQ(BeforeQuotes("syntaxe en entrée invalide : « 4111 »"),
            "syntaxe en entrée invalide : …");
  EXPECT_EQ(BeforeQuotes("character with byte sequence 0xd0 0xb7 in encoding \"UTF8\""),
            "character with byte sequence …");
  EXPECT_EQ(BeforeQuotes("\"4111\" is out of range"), "");
}

TEST(FailureText, IsOneLineOfBoundedSizeThatEndsWithAWholeCharacter) {
  std::string text;
  while (text.size() < 600'000) text += "з\n";
  const std::string cut = ErrorText(text);
  EXPECT_LE(cut.size(), kMaxErrorText);
  EXPECT_EQ(cut.find('\n'), std::string::npos);
  EXPECT_TRUE(cut.ends_with("з...") || cut.ends_with("з ...")) << cut.substr(cut.size() - 8);
}

TEST(FailureText, TrustsPostgresOwnWordsWhereTheyHoldNoData) {
  EXPECT_EQ(WithoutRecord({.sqlstate = "53100",
                           .message = "could not extend file \"base/5/16384\": No space left",
                           .context = "",
                           .schema = "",
                           .table = "",
                           .column = "",
                           .constraint = "",
                           .datatype = ""}),
            "could not extend file \"base/5/16384\": No space left (SQLSTATE 53100)");
}

TEST(FailureText, TrustsNoWordsOfFunctionsAndExtensions) {
  PgErrorFields fields;
  fields.sqlstate = "55000";
  fields.message = "not now: 4111";
  fields.context = "PL/pgSQL function shop.wait(text) line 3 at RAISE\nSQL statement \"…\"";
  EXPECT_EQ(WithoutRecord(fields),
            "object_not_in_prerequisite_state in function shop.wait(text) (SQLSTATE 55000)");
  fields.context = "PL/Python function \"wait\"";
  EXPECT_EQ(WithoutRecord(fields), "object_not_in_prerequisite_state (SQLSTATE 55000)");
  fields.context = "";
  fields.sqlstate = "XX000";
  EXPECT_EQ(WithoutRecord(fields), "internal_error (SQLSTATE XX000)");
  fields.sqlstate = "SH001";
  EXPECT_EQ(WithoutRecord(fields), "an error (SQLSTATE SH001)");
}

// RAISE … USING CONSTRAINT = NEW.card.
TEST(FailureText, OfPostgresNamesATableAndItsConstraintWhereTheServerItselfSaysThem) {
  PgErrorFields fields{.sqlstate = "23514", .table = "t", .constraint = "4111"};
  for (const char* own :
       {"", "while updating tuple (0,1) in relation \"t\"",
        "SQL statement \"INSERT INTO t VALUES (NEW.card)\"\nPL/pgSQL function f() "
        "line 1 at SQL statement"}) {
    fields.context = own;
    EXPECT_NE(WithoutRecord(fields).find(", table t, constraint 4111)"), std::string::npos) << own;
  }
  for (const char* raised : {"PL/pgSQL function f() line 1 at RAISE\nSQL statement \"SELECT f()\"",
                             "PL/Python function \"f\"", "anything else"}) {
    fields.context = raised;
    EXPECT_EQ(WithoutRecord(fields).find("4111"), std::string::npos) << raised;
  }
}

}  // namespace
}  // namespace fencepost::consumer
