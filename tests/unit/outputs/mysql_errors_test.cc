// What is shown of MySQL's errors: nothing of a record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/outputs/mysql/mysql_connection.h"

namespace fencepost::consumer {
namespace {

TEST(MysqlErrors, OfASignalAreShownWithoutItsText) {
  const struct {
    unsigned code;
    const char* sqlstate;
    WriteFailure kind;
  } signals[] = {
      {1644, "45000", WriteFailure::kRefused},     {1644, "23000", WriteFailure::kRefused},
      {1644, "55000", WriteFailure::kUnavailable}, {1644, "08001", WriteFailure::kUnavailable},
      {1643, "02000", WriteFailure::kRefused},     {1205, "45000", WriteFailure::kLocked},
      {1206, "45000", WriteFailure::kLocked},      {1030, "45000", WriteFailure::kUnavailable}};
  for (const auto& signal : signals) {
    const MysqlFailure failure{.kind = MysqlFailure::Kind::kServer,
                               .code = signal.code,
                               .sqlstate = signal.sqlstate,
                               .text = "card 4111 is blocked"};
    EXPECT_EQ(FailureOf(failure), signal.kind) << signal.code << signal.sqlstate;
    EXPECT_EQ(ToOutputError(failure, "db").error.what,
              std::string("a trigger refused the row (SQLSTATE ") + signal.sqlstate + ")");
  }
}

TEST(MysqlErrors, OfARightThatIsMissingAreNoRecordsFault) {
  for (const unsigned code : {1044U, 1045U, 1142U, 1143U}) {
    const MysqlFailure failure{.kind = MysqlFailure::Kind::kServer,
                               .code = code,
                               .sqlstate = "42000",
                               .text = "INSERT command denied",
                               .of_write = true};
    EXPECT_EQ(FailureOf(failure), WriteFailure::kUnavailable) << code;
    EXPECT_EQ(ToOutputError(failure, "db").error.code, "output_denied") << code;
  }
}

// A trigger's SIGNAL or RESIGNAL gives any code, also one of the client library, any text.
TEST(MysqlErrors, OfAWriteAreShownByTheirCodeAlone) {
  using Kind = MysqlFailure::Kind;
  for (const auto& [kind, code] : {std::pair(Kind::kServer, 1264U),
                                   {Kind::kServer, 1366U},
                                   {Kind::kServer, 1290U},
                                   {Kind::kServer, 1114U},
                                   {Kind::kServer, 1206U},
                                   {Kind::kServer, 9999U},
                                   {Kind::kConnection, 2013U}}) {
    const MysqlFailure failure{.kind = kind,
                               .code = code,
                               .sqlstate = "22003",
                               .text = "card 4111 is blocked",
                               .of_write = true};
    const std::string shown = ToOutputError(failure, "db").error.what;
    EXPECT_THAT(shown,
                ::testing::EndsWith(" (error " + std::to_string(code) + ", SQLSTATE 22003)"));
    EXPECT_THAT(shown, ::testing::Not(::testing::HasSubstr("4111")));
  }
}

TEST(MysqlErrors, OfTheServerAreShownInItsOwnWordsUpToTheValue) {
  MysqlFailure failure{.kind = MysqlFailure::Kind::kServer,
                       .code = 1366,
                       .sqlstate = "22007",
                       .text = "Incorrect integer value: '4111' for column `d`.`t`.`a` at row 1"};
  EXPECT_EQ(failure.Shown(), "Incorrect integer value: …");
  failure.code = 1114;
  failure.sqlstate = "HY000";
  failure.text = "The table 'effects' is full";
  EXPECT_EQ(failure.Shown(), failure.text);
}

}  // namespace
}  // namespace fencepost::consumer
