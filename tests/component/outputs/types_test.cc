// What becomes of a value in a column of each type: the tables of consumer/outputs/postgres and
// consumer/outputs/mysql.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using enum WriteResult;

struct Row {
  const char* name;
  const char* type;
  const char* json;    // the value at /v
  const char* stored;  // as the column says it in text; nullptr: the record is bad
  const char* why = "";
  Conversion conversion = Conversion::kNone;
  const char* selector = "json:/v";
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
std::string RowName(const ::testing::TestParamInfo<Row>& row) { return row.param.name; }

class Types : public ::testing::TestWithParam<Row> {
 protected:
  // `text`: an SQL expression for the column's text.
  static void Expect(Store& store, const std::string& text) {
    const Row& row = GetParam();
    store.Exec(fmt::format("CREATE TABLE effects (id varchar(20), v {} NULL)", row.type));
    auto columns = Columns({{"id", "record_id"}, {"v", row.selector}});
    columns[1].conversion = row.conversion;
    const auto output = store.Open(std::move(columns), {});
    // One that the table takes, so that a refusal is the record's own.
    if (std::string_view(row.selector) == "json:/v") {
      const Batch good{{.id = "null", .offset = 1, .value = R"({"v":null})", .key = "k"}};
      ASSERT_EQ(WriteAll(*output, good).value().at(0).result, kCommitted);
      EXPECT_EQ(store.Exec("SELECT id FROM effects WHERE v IS NULL"), "null");
    }
    const Batch batch{
        {.id = "a", .offset = 2, .value = fmt::format(R"({{"v":{}}})", row.json), .key = "k\"1"},
        {.id = "b", .offset = 3, .value = R"({"v":null})", .key = "k"}};
    const auto outcomes = WriteAll(*output, batch);
    ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
    const WriteOutcome& outcome = outcomes->at(0);
    if (row.stored != nullptr) {
      EXPECT_EQ(outcome.result, kCommitted) << outcome.detail;
      EXPECT_EQ(store.Exec("SELECT " + text + " FROM effects WHERE id = 'a'"), row.stored);
      return;
    }
    ASSERT_EQ(outcome.result, kBadRecord);
    EXPECT_EQ(outcomes->at(1).result, kCommitted) << "it holds back no other";
    const std::string place = std::string_view(row.why).starts_with("SQLSTATE")
                                  ? ""  // the server names no column then
                                  : fmt::format("column v ({}) from {}", row.type, row.selector);
    EXPECT_THAT(outcome.detail, AllOf(HasSubstr(place), HasSubstr(row.why)));
    EXPECT_THAT(outcome.shown, AllOf(HasSubstr(place), Not(HasSubstr("s3cret"))));
  }
};

class PostgresTypes : public Types {};
TEST_P(PostgresTypes, StoreTheValueOrNameColumnTypeAndSelector) {
  Store store(Store::Kind::kPostgres);
  store.Exec(
      "CREATE TYPE mood AS ENUM ('glad'); CREATE DOMAIN doc AS jsonb;"
      "CREATE DOMAIN short AS varchar(4)");
  Expect(store, "v::text");
}

class MysqlTypes : public Types {};
TEST_P(MysqlTypes, StoreTheValueOrNameColumnTypeAndSelector) {
  Store store(Store::Kind::kMysql);
  Expect(store, fmt::format("if('{}' IN ('blob', 'bit(1)'), hex(v), v)", GetParam().type));
}

INSTANTIATE_TEST_SUITE_P(
    Json, PostgresTypes,
    ::testing::Values(Row{"StringThatLooksLikeANumber", "jsonb", R"("123")", R"("123")"},
                      Row{"StringThatLooksLikeNull", "jsonb", R"("null")", R"("null")"},
                      Row{"StringThatLooksLikeAnObject", "jsonb", R"("{\"a\":1}")",
                          R"("{\"a\":1}")"},
                      Row{"StringOfText", "json", R"("text")", R"("text")"},
                      Row{"Number", "jsonb", "12.50", "12.50"},
                      Row{"Object", "jsonb", R"({"a":[1,null]})", R"({"a": [1, null]})"},
                      Row{"Key", "jsonb", "1", R"("k\"1")", "", Conversion::kNone, "key"},
                      Row{"Offset", "jsonb", "1", "2", "", Conversion::kNone, "offset"},
                      Row{"Document", "jsonb", "1", R"({"v": 1})", "", Conversion::kNone, "value"}),
    RowName);

INSTANTIATE_TEST_SUITE_P(
    Arrays, PostgresTypes,
    ::testing::Values(
        Row{"OfIntegers", "integer[]", "[1, 2.0, null, 3e1]", "{1,2,NULL,30}"},
        Row{"Nested", "integer[]", "[[1,2],[3,4]]", "{{1,2},{3,4}}"},
        Row{"Empty", "integer[]", "[]", "{}"},
        Row{"OfTexts", "text[]", R"(["a b","q\"\\\u00e9\ud83d\ude00","",null,"NULL","{,}"])",
            "{\"a b\",\"q\\\"\\\\é😀\",\"\",NULL,\"NULL\",\"{,}\"}"},
        Row{"OfObjectsAsTexts", "text[]", R"([{"a":"]"},2,true])", R"({"{\"a\":\"]\"}",2,true})"},
        Row{"OfDocuments", "jsonb[]", R"(["s",1,{"a":2}])", R"({"\"s\"",1,"{\"a\": 2}"})"},
        Row{"WithAFraction", "integer[]", "[1.5]", nullptr, "has an element that is not a whole"},
        Row{"WithANul", "text[]", R"(["\u0000"])", nullptr, "NUL"},
        Row{"OfADomainOfDocuments", "doc[]", R"(["123"])", R"({"\"123\""})"},
        Row{"NoArray", "integer[]", "\"s3cret\"", nullptr, "malformed array literal"}),
    RowName);

INSTANTIATE_TEST_SUITE_P(
    Numbers, PostgresTypes,
    ::testing::Values(
        Row{"WholeWithAPoint", "integer", "1.0", "1"},
        Row{"WholeWithAnExponent", "bigint", "1e3", "1000"},
        Row{"MinusZero", "smallint", "-0.0", "0"},
        Row{"Largest", "bigint", "9223372036854775807", "9223372036854775807"},
        Row{"Fraction", "integer", "1.5", nullptr, "is not a whole number"},
        Row{"TooLarge", "smallint", "32768", nullptr, "out of the type's range"},
        Row{"TextOfDigits", "integer", R"("12")", "12"},
        Row{"AllDigits", "numeric", "0.1000000000000000000000001", "0.1000000000000000000000001"},
        Row{"Boolean", "boolean", "true", "true"},
        Row{"TooPrecise", "numeric(5,2)", "12345", nullptr, "numeric field overflow"},
        Row{"TooLong", "character varying(3)", R"("s3cret")", nullptr, "too long"},
        Row{"JustLongEnough", "character varying(3)", R"("äöü")", "äöü"},
        Row{"NoUuid", "uuid", R"("s3cret")", nullptr, "invalid input syntax for type uuid"},
        Row{"Uuid", "uuid", R"("6ba7b810-9dad-11d1-80b4-00c04fd430c8")",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
        Row{"MoreThan53Bits", "bigint", "9007199254740993", "9007199254740993"},
        Row{"Token", "bigint", "1", "1", "", Conversion::kNone, "token"},
        Row{"Constant", "integer", "1", "12", "", Conversion::kNone, "=12"},
        Row{"Bytes", "bytea", "1", "\\x6b2231", "", Conversion::kNone, "key"},
        Row{"Char", "character(3)", R"("abc")", "abc"}, Row{"Domain", "short", R"("four")", "four"},
        Row{"TooLongForADomain", "short", R"("s3cret")", nullptr, "SQLSTATE 22001"},
        Row{"Time", "timestamp with time zone", R"("2026-01-02T03:04:05Z")",
            "2026-01-02 03:04:05+00"},
        Row{"ArrayAsText", "integer[]", R"("{1,2}")", "{1,2}"},
        Row{"Enum", "mood", R"("glad")", "glad"}, Row{"NoMood", "mood", R"("s3cret")", nullptr},
        // Whatever the error is called.
        Row{"NoNumber", "integer", R"("s3cret")", nullptr},
        Row{"NoQuery", "tsquery", R"("a & & b")", nullptr, "SQLSTATE 42601"},
        Row{"NoVector", "tsvector", R"("a 'b")", nullptr, "SQLSTATE 42601"},
        Row{"NoPath", "jsonpath", R"("$.(")", nullptr, "SQLSTATE 42601"},
        Row{"NoTable", "regclass", R"("no_such_table")", nullptr, "SQLSTATE 42P01"},
        Row{"NoType", "regtype", R"("nix")", nullptr, "SQLSTATE 42704"},
        Row{"NoProcedure", "regprocedure", "\"nix()\"", nullptr, "SQLSTATE 42883"},
        Row{"NoRange", "int4range", "\"[2,1)\"", nullptr},
        Row{"NoAddress", "inet", R"("x")", nullptr},
        Row{"TooManyBits", "bit(3)", R"("1011")", nullptr, "SQLSTATE 22026"},
        Row{"NoMonth", "timestamp with time zone", R"("2026-13-01")", nullptr},
        Row{"NoPoint", "point", R"("(1")", nullptr}),
    RowName);

INSTANTIATE_TEST_SUITE_P(
    Converted, PostgresTypes,
    ::testing::Values(
        Row{"Milliseconds", "timestamp with time zone", "1735689600123",
            "2025-01-01 00:00:00.123+00", "", Conversion::kMillis},
        Row{"Seconds", "timestamp without time zone", "-1.5", "1969-12-31 23:59:58.5", "",
            Conversion::kSeconds},
        Row{"Date", "date", "1735689600000000", "2025-01-01", "", Conversion::kMicros},
        Row{"NanosAsText", "text", "1", "1970-01-01T00:00:00.000000001Z", "", Conversion::kNanos},
        Row{"OfTheRecord", "timestamp with time zone", "1", "2023-11-14 22:13:20.123+00", "",
            Conversion::kMillis, "timestamp"},
        Row{"WrongUnit", "timestamp with time zone", "1735689600000", nullptr, "is that its unit?",
            Conversion::kSeconds},
        Row{"WithoutUnit", "timestamp with time zone", "1735689600000", nullptr,
            "convert says the unit"},
        Row{"NoNumber", "timestamp with time zone", R"("s3cret")", nullptr, "is not a number",
            Conversion::kMillis},
        Row{"Base64", "bytea", R"("aGVsbG8=")", "\\x68656c6c6f", "", Conversion::kBase64},
        Row{"Base64Url", "bytea", R"("_-8")", "\\xffef", "", Conversion::kBase64},
        Row{"Hex", "bytea", R"("DEADbeef")", "\\xdeadbeef", "", Conversion::kHex},
        Row{"NoHex", "bytea", R"("s3cret")", nullptr, "is not hex", Conversion::kHex}),
    RowName);

INSTANTIATE_TEST_SUITE_P(
    Values, MysqlTypes,
    ::testing::Values(
        Row{"WholeNumber", "int(11)", "1.0", "1"}, Row{"Exponent", "bigint(20)", "1e3", "1000"},
        Row{"Fraction", "int(11)", "1.5", nullptr, "is not a whole number"},
        Row{"TooLarge", "tinyint(4)", "300", nullptr, "out of the type's range"},
        Row{"NegativeUnsigned", "int(10) unsigned", "-1", nullptr, "out of the type's range"},
        Row{"Boolean", "tinyint(1)", "true", "1"}, Row{"Bit", "bit(1)", "true", "1"},
        Row{"TextThatIsANumber", "int(11)", R"("12")", "12"},
        Row{"TextThatIsNone", "int(11)", R"("s3cret")", nullptr, "Incorrect integer value"},
        Row{"Decimal", "decimal(10,2)", "12.50", "12.50"}, Row{"Double", "double", "0.1", "0.1"},
        Row{"Text", "varchar(20)", R"("it's \"q\" \\ ü")", R"(it's "q" \ ü)"},
        Row{"TooLong", "varchar(3)", R"("s3cret")", nullptr, "Data too long"},
        Row{"TextOfAnObject", "text", R"({"a": 1})", R"({"a": 1})"},
        Row{"JsonString", "json", R"("123")", R"("123")"},
        Row{"JsonObject", "json", R"({"a":[1,"x"]})", R"({"a":[1,"x"]})"},
        Row{"JsonNumber", "json", "12.50", "12.50"},
        Row{"JsonOfKey", "json", "1", R"("k\"1")", "", Conversion::kNone, "key"},
        Row{"BytesAsTheyAre", "blob", R"("ab")", "6162"},
        Row{"Base64", "blob", R"("AP8=")", "00FF", "", Conversion::kBase64},
        Row{"Hex", "blob", R"("00ff")", "00FF", "", Conversion::kHex},
        Row{"HexInText", "varchar(20)", R"("00ff")", nullptr, "the column is not binary",
            Conversion::kHex},
        Row{"Date", "date", R"("2026-11-22")", "2026-11-22"},
        Row{"DateOfSeconds", "date", "1700000000", "2023-11-14", "", Conversion::kSeconds},
        Row{"Utc", "datetime(3)", R"("2026-11-22T13:05:00.250Z")", "2026-11-22 13:05:00.250"},
        Row{"Offset", "datetime(6)", R"("2026-11-22T01:05:00.25+02:30")",
            "2026-11-21 22:35:00.250000"},
        Row{"PlainTime", "timestamp", R"("2026-11-22 13:05:00")", "2026-11-22 13:05:00"},
        Row{"Milliseconds", "datetime(3)", "1700000000123", "2023-11-14 22:13:20.123", "",
            Conversion::kMillis},
        Row{"TimestampOfTheRecord", "datetime(3)", "1", "2023-11-14 22:13:20.123", "",
            Conversion::kNone, "timestamp"},
        Row{"NoTime", "datetime", R"("s3cret")", nullptr, "Incorrect datetime value"}),
    RowName);

// A column before it whose cell PostgreSQL would not read as the type's literal either.
TEST_F(PostgresTest, TheColumnThatIsNamedIsTheOneThatWasRefused) {
  Exec("CREATE TABLE t (at timestamptz, u uuid)");
  const auto output = Open("t", {{"at", "timestamp"}, {"u", "json:/u"}});
  const Batch batch{{.id = "a", .offset = 1, .value = R"({"u":"no"})"},
                    {.id = "b", .offset = 2, .value = R"({"u":null})"}};
  EXPECT_THAT(WriteAll(*output, batch).value().at(0).detail,
              HasSubstr("column u (uuid) from json:/u: invalid input syntax for type uuid"));
}

TEST_F(PostgresTest, JsonArraysGoIntoTheArrayParametersOfAStatement) {
  Exec("CREATE TABLE t (id text, v integer[])");
  PostgresOptions options{
      .dsn = Dsn(),
      .statement = "INSERT INTO t VALUES ($1, $2)",
      .args = {Selector::Parse("record_id").value(), Selector::Parse("json:/v").value()}};
  const Batch batch{{.id = "a", .offset = 1, .value = R"({"v":[1,2.0,null]})"}};
  ASSERT_EQ(WriteAll(*Open(options), batch).value().at(0).result, kCommitted);
  EXPECT_EQ(Value("SELECT v FROM t"), "{1,2,NULL}");
}

TEST_F(PostgresTest, AConversionThatTheColumnCannotTakeIsRefusedBeforeTheFirstRecord) {
  Exec("CREATE TABLE t (n bigint, b text)");
  PostgresOptions options = Options();
  options.table = "t";
  options.columns = Columns({{"n", "json:/n"}});
  options.columns[0].conversion = Conversion::kMillis;
  auto prepared = Open(options)->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().error.what,
            "public.t.n is bigint, which output.postgres.convert: ms cannot fill");
  options.columns = Columns({{"b", "json:/b"}});
  options.columns[0].conversion = Conversion::kHex;
  prepared = Open(options)->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().error.hint, "it is for binary columns");
}

}  // namespace
}  // namespace fencepost::consumer
