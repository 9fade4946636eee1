// The jq handler.
#include <random>

#include <fmt/format.h>

#include "consumer/handlers/jq/jq_handler.h"
#include "consumer/handlers/jq/jq_numbers.h"
#include "tests/component/handlers/runner_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class JqRunner : public RunnerFixture {
 protected:
  void StartJq(const std::string& program) { Start({.kind = JqHandlerOptions{program}}); }
};

TEST_F(JqRunner, GivesTheResultAsCompactJson) {
  StartJq("{order_id, cents: (.amount * 100)}");
  EXPECT_EQ(ValueOf(R"({"order_id": "o-1", "amount": 12.34, "more": [1, 2]})"),
            R"({"order_id":"o-1","cents":1234})");
  EXPECT_EQ(recorder_.handled(), 1);
}

TEST_F(JqRunner, GivesEveryResultAndTakesNullForNull) {
  StartJq(".[]");
  EXPECT_THAT(ResultOf(R"([1, null, "a", {"b": null}, false])").value(),
              ElementsAre("1", std::nullopt, "\"a\"", R"({"b":null})", "false"));
  EXPECT_THAT(ResultOf("[]").value(), IsEmpty());
}

TEST_F(JqRunner, ShowsTheProgramWhichRecordItIs) {
  StartJq("def id: $record_id; [id, $topic, $partition, $offset, $key, $headers, .] # the end");
  EXPECT_EQ(
      ValueOf({.value = "7", .key = "k", .headers = {{"a", "1"}, {"b", std::nullopt}, {"a", "2"}}}),
      R"(["o-1","orders",3,42,"k",{"a":"2","b":null},7])");
  EXPECT_EQ(ValueOf({.value = "7"}), R"(["o-1","orders",3,42,null,{},7])");
}

TEST_F(JqRunner, FailsWithTheProgramsOwnWords) {
  StartJq(R"(if .a == 1 then error("no good")
             elif .a == 2 then error({b: 1})
             elif .a == 3 then ("stop\n" | halt_error)
             elif .a == 4 then 1, halt
             else .a + "x" end)");
  EXPECT_EQ(Told(R"({"a": 1})"), "jq, for good: no good");
  EXPECT_EQ(FailureOf(R"({"a": 2})").text, R"({"b":1})");
  EXPECT_EQ(FailureOf(R"({"a": 3})").text, "stop");
  EXPECT_EQ(ValueOf(R"({"a": 4})"), "1");
  EXPECT_EQ(FailureOf(R"({"a": 5})").text, R"(number (5) and string ("x") cannot be added)");
  EXPECT_EQ(ValueOf(R"({"a": "y"})"), R"("yx")");
}

TEST_F(JqRunner, PrintsNothingAndHasNoOtherInput) {
  StartJq("stderr | debug, (try input catch \"none\")");
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(ResultOf("4111").value(), ElementsAre("4111", "\"none\""));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(JqRunner, GivesNothingOfAProgramThatFailsAfterSomeResults) {
  StartJq("1, error(\"late\")");
  EXPECT_EQ(FailureOf("{}").text, "late");
}

TEST_F(JqRunner, TakesWhatIsNotJsonForABadRecord) {
  StartJq(".");
  for (const char* bad : {"", " ", "{", "{\"a\":1} x", "nan", "'a'", "{\"a\":tru}", "\"\xff\""}) {
    EXPECT_THAT(Told(bad), StartsWith("bad_record, for good: ")) << bad;
  }
  EXPECT_EQ(FailureOf(std::string(500, '[') + std::string(500, ']')).error_class, "bad_record");
}

TEST_F(JqRunner, GivesTheProgramNullForARecordWithoutAValue) {
  StartJq("if . == null then null, $key else .a end");
  EXPECT_THAT(ResultOf({.value = std::nullopt, .key = "k"}).value(),
              ElementsAre(std::nullopt, "\"k\""));
  EXPECT_EQ(ValueOf(R"({"a":1})"), "1");
  StartJq(".amount * 100");
  EXPECT_EQ(FailureOf(CallSpec{}).error_class, "jq");
}

TEST_F(JqRunner, OutlivesATimeThatNoCalendarHas) {
  StartJq(R"(if .f == "todate" then .t | todate
             elif .f == "iso" then .t | todateiso8601
             elif .f == "local" then .t | strflocaltime("%Y")
             elif .f == "format" then .t | strftime(.)
             elif .f == "local format" then .t | strflocaltime(.)
             elif .f == "nan" then nan | todate
             else .t | strftime("%Y") end)");
  for (const char* function : {"todate", "iso", "local", "year"}) {
    for (const char* time : {"1e19", "-1e19", "1e300", "253402300800", "-62167219201"}) {
      const HandlerFailure failure =
          FailureOf(fmt::format(R"({{"f":"{}","t":{}}})", function, time));
      EXPECT_EQ(failure.error_class, "jq");
      EXPECT_THAT(failure.text, HasSubstr("is not a time of the years 0 to 9999"));
    }
  }
  EXPECT_EQ(FailureOf(R"({"f":"nan"})").error_class, "jq");
  EXPECT_EQ(FailureOf(R"({"f":"format","t":0})").error_class, "jq");
  EXPECT_EQ(FailureOf(R"({"f":"local format","t":0})").error_class, "jq");
  EXPECT_EQ(FailureOf(R"({"f":"year","t":"x"})").text,
            "strftime/1 requires parsed datetime inputs");
  EXPECT_EQ(ValueOf(R"({"f":"todate","t":253402300799})"), R"("9999-12-31T23:59:59Z")");
  EXPECT_EQ(ValueOf(R"({"f":"todate","t":1425599621.678})"), R"("2015-03-05T23:53:41Z")");
  EXPECT_EQ(ValueOf(R"({"f":"iso","t":[2015,2,5,23,51,47,4,63]})"), R"("2015-03-05T23:51:47Z")");
  EXPECT_EQ(ValueOf(R"({"f":"local","t":100000000})"), R"("1973")");
}

TEST_F(JqRunner, OutlivesTheRemainderOfADivisionByMinusOne) {
  StartJq(".a % .b");
  EXPECT_EQ(ValueOf(R"({"a":1e19,"b":-1})"), "0");
  EXPECT_EQ(ValueOf(R"({"a":-1e19,"b":-1.5})"), "0");
  EXPECT_EQ(ValueOf(R"({"a":-5,"b":3})"), "-2");
  EXPECT_THAT(FailureOf(R"({"a":5,"b":0})").text, HasSubstr("divisor is zero"));
  EXPECT_THAT(FailureOf(R"({"a":"x","b":-1})").text, HasSubstr("cannot be divided"));
  StartJq("[(7, 8) % (3, 4)], (.a %= -1 | .a)");
  EXPECT_THAT(ResultOf(R"({"a":1e19})").value(), ElementsAre("[1,2,3,0]", "0"));
}

TEST_F(JqRunner, FindsAnEmptyTextNowhere) {
  StartJq(R"([indices(""), index(""), rindex("")], [indices("a"), rindex("a")])");
  EXPECT_THAT(ResultOf(R"("aba")").value(), ElementsAre("[[],null,null]", "[[0,2],2]"));
}

TEST_F(JqRunner, FailsWithAnErrorThatIsNull) {
  StartJq(R"(if .a == 1 then error(null)
             elif .a == 2 then null | error
             elif .a == 3 then error(.b)
             elif .a == 4 then try error(null) catch .
             elif .a == 5 then try error("x") catch .
             else label $out | 1, break $out, 2 end)");
  for (const char* value : {R"({"a":1})", R"({"a":2})", R"({"a":3})"}) {
    const HandlerFailure failure = FailureOf(value);
    EXPECT_EQ(failure.error_class, "jq");
    EXPECT_EQ(failure.text, "null (not a string)");
  }
  EXPECT_EQ(ValueOf(R"({"a":4})"), "\"null (not a string)\"");
  EXPECT_EQ(ValueOf(R"({"a":5})"), R"("x")");
  EXPECT_EQ(ValueOf(R"({"a":6})"), "1");
}

TEST_F(JqRunner, CountsLinesAsTheUserWroteThem) {
  StartJq("$__loc__.line, $key,\n$__loc__.line");
  EXPECT_THAT(ResultOf({.value = "0", .key = "k"}).value(), ElementsAre("1", "\"k\"", "2"));
}

TEST_F(JqRunner, RefusesANumberThatItWouldChangeOnlyWhereTheResultDependsOnIt) {
  const std::string value =
      R"({"big":9007199254740993,"small":5,"ts_ns":1716804532125001789,"s":"9007199254740993"})";
  const struct {
    const char* program;
    const char* changed;  // nullptr: none
  } kRows[] = {
      {".small", nullptr},
      {"{small, s}", nullptr},
      {"del(.big, .ts_ns)", nullptr},
      {"select(.ts_ns > 0) | .small", nullptr},
      {"if .big > 5 then \"much\" else \"little\" end", nullptr},
      {"[.big, .small] | length", nullptr},
      {"{at: now, small}", nullptr},
      {"empty", nullptr},
      {"halt", nullptr},
      {".", "9007199254740993"},
      {".big", "9007199254740993"},
      {"[.ts_ns]", "1716804532125001789"},
      {".big + 1", "9007199254740993"},
      {".big | tostring", "9007199254740993"},
      {".ts_ns | tojson | .[-3:]", "1716804532125001789"},
      {".big == 9007199254740992", "9007199254740993"},
      {"select(.big <= 9007199254740992)", "9007199254740993"},
      {"{(.ts_ns | tostring): now}", "1716804532125001789"},
      {".small, .ts_ns", "1716804532125001789"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.program);
    StartJq(row.program);
    if (row.changed == nullptr) {
      EXPECT_TRUE(ResultOf(value).has_value());
    } else {
      EXPECT_EQ(Told(value),
                fmt::format("bad_record, for good: jq would change the number {}", row.changed));
    }
  }
}

TEST_F(JqRunner, SeesATimeoutBetweenTwoResults) {
  StartJq("if . == 0 then range(1e15) | empty, select(. % 100000 == 0) else . end");
  EXPECT_EQ(FailureOf({.value = "0", .timeout = 50ms}).error_class, "timeout");
  EXPECT_EQ(ValueOf("1"), "1");
}

TEST_F(JqRunner, RefusesMoreThanSixteenMebibytesOfResults) {
  StartJq("range(1e15)");
  EXPECT_THAT(Told("0"), StartsWith("too_large, for good: "));
}

TEST_F(JqRunner, RefusesToStartWithAProgramThatDoesNotCompile) {
  const auto error = [this](const std::string& program) {
    return StartError({.kind = JqHandlerOptions{program}});
  };
  EXPECT_EQ(error(".a | )"),
            "handler.jq: the jq program does not compile: syntax error, unexpected "
            "INVALID_CHARACTER at <top-level>, line 1: .a | )");
  EXPECT_THAT(error(".\n| nothing"), HasSubstr("nothing/0 is not defined at <top-level>, line 2"));
  EXPECT_THAT(error("$other"), HasSubstr("$other is not defined"));
  EXPECT_THAT(error("import \"a\" as a; ."), HasSubstr("module not found: a"));
  EXPECT_THAT(error(std::string(".\0", 2)), HasSubstr("NUL"));
  EXPECT_THAT(error("_error"), HasSubstr("_error/0 is not defined"));
  EXPECT_EQ(error("module {}; ."),
            "handler.jq: the jq program does not compile: it must be an expression, without a "
            "module line");
}

TEST_F(JqRunner, RunsManyRecordsOnManyThreads) {
  StartJq(R"({n: .n, m: (.s | test("^a+$")), t: (.s | gsub("a"; "b"))})");
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 2000; ++i) ids.push_back(Call(fmt::format(R"({{"n":{},"s":"aaa"}})", i)));
  ASSERT_TRUE(testing::WaitUntil(30s, [&] { return recorder_.handled() == 2000; }));
  for (int i = 0; i < 2000; i += 99) {
    EXPECT_EQ(AnswerTo(ids[i]).result.value().front(),
              fmt::format(R"({{"n":{},"m":true,"t":"bbb"}})", i));
  }
}

TEST(JqNumbers, PassWhenADoubleGivesBackTheirValue) {
  for (const char* fine : {"0",
                           "-0",
                           "0.0",
                           "-0.000e99",
                           "0e99999999999999999999",
                           "1",
                           "1.50",
                           "15e-1",
                           "1E2",
                           "1e+2",
                           "123456789012345",
                           "9007199254740991",
                           "9007199254740992",
                           "0.1",
                           "0.30000000000000004",
                           "1e19",
                           "10000000000000000000",
                           "100000000000000000000000.000",
                           "1.7976931348623157e308",
                           "5e-324",
                           "2.2250738585072014E-308",
                           "0.000000000000000000000000000001",
                           "[1,2,{\"9007199254740993\":\"1e999\",\"a\\\"1e999\":3}]",
                           "\"\\\\\"",
                           "[]",
                           "\"1e999\""}) {
    EXPECT_THAT(FindInexactNumbers(fine), IsEmpty()) << fine;
  }
}

TEST(JqNumbers, AreFoundWhenADoubleWouldChangeThem) {
  for (const char* bad :
       {"9007199254740993", "-9007199254740993", "1152921504606846976", "12345678901234567890",
        "0.1234567890123456789", "1.00000000000000000001", "1e999", "-1e999", "1e-400", "4.9e-324",
        "1e99999999999999999999", "1e-99999999999999999999", "9007199254740993.0",
        "900719925474099.3e1", "0.30000000000000001"}) {
    EXPECT_THAT(FindInexactNumbers(bad), ElementsAre(bad));
    const std::string inside = fmt::format("{{\"a\\\\\":[1,{}]}}", bad);
    EXPECT_THAT(FindInexactNumbers(inside), ElementsAre(bad)) << inside;
  }
}

// Random spellings: what passes comes out of jq with the value it had, judged in decimals.
TEST(JqNumbers, ThatPassComeOutOfJqAsTheyWentIn) {
  const auto handler = JqHandler::Make(".").value();
  std::mt19937_64 random(1);
  const TopicPartition where{.topic = "t"};
  int passed = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string number = random() % 2 == 0 ? "-" : "";
    number += static_cast<char>('1' + random() % 9);
    for (auto more = random() % 19; more > 0; --more)
      number += static_cast<char>('0' + random() % 10);
    if (random() % 2 == 0) number += fmt::format(".{:0>3}", random() % 1000);
    if (random() % 2 == 0) number += fmt::format("e{}", static_cast<int>(random() % 600) - 300);
    Record record;
    record.value = number;
    const auto result = handler->Handle({.record = &record, .where = &where}, {});
    if (!FindInexactNumbers(number).empty()) {
      EXPECT_FALSE(result.has_value()) << number;
      continue;
    }
    ++passed;
    ASSERT_TRUE(result.has_value()) << number;
    // A long double (64 bits) tells neighbouring doubles and any 19 digits apart.
    EXPECT_EQ(std::strtold(number.c_str(), nullptr),
              std::strtold(result->front()->c_str(), nullptr))
        << number << " became " << *result->front();
  }
  EXPECT_GT(passed, 10'000);
  EXPECT_LT(passed, 19'000);
}

// `when`: what its first result says counts, and nothing else of it.
TEST(JqFilter, MatchesWhereItsFirstResultIsNeitherFalseNorNull) {
  struct Row {
    const char* program;
    const char* value;
    std::string told;
  };
  const std::vector<Row> rows = {
      {R"(.op == "u")", R"({"op":"u"})", "yes"},
      {R"(.op == "u")", R"({"op":"c"})", "no"},
      {R"(select(.op == "u"))", R"({"op":"u","ts_ns":1700000000123456789})", "yes"},
      {".id", R"({"id":1700000000123456789})", "yes"},
      {".id", R"({"id":0})", "yes"},
      {".id", "{}", "no"},
      {"empty", "{}", "no"},
      {"false, true", "{}", "no"},
      {".[] | .x", R"([{"x":1},5])", "yes"},
      {".a # the order", R"({"a":true})", "yes"},
      {"def f: .a; f", R"({"a":false})", "no"},
      {".x.y", R"({"x":5})", "when: the program failed on the value"},
  };
  for (const Row& row : rows) {
    const auto filter = MakeRecordFilter({.program = row.program});
    ASSERT_TRUE(filter) << filter.error().Line();
    Record record;
    record.value = row.value;
    Filter(**filter, false, {.topic = "t", .partition = 0}, record);
    EXPECT_EQ(!record.problem.empty() ? record.problem
              : record.filtered       ? "no"
                                      : "yes",
              row.told)
        << row.program << " " << row.value;
  }
}

TEST(JqFilter, OfAReplayKnowsWhereItsOriginalWas) {
  const auto filter = MakeRecordFilter({.program = "$partition == 1 and $offset == 7"});
  ASSERT_TRUE(filter);
  Record record;
  record.offset = 40;
  record.headers = {{dead_letter_header::kTopic, "t"},
                    {dead_letter_header::kPartition, "1"},
                    {dead_letter_header::kOffset, "7"}};
  Filter(**filter, true, {.topic = "t", .partition = 3}, record);
  EXPECT_FALSE(record.filtered) << record.problem;
}

}  // namespace
}  // namespace fencepost::consumer
