// fencepost tables on real databases.
#include <filesystem>
#include <regex>

#include <nlohmann/json.hpp>

#include "config/loader.h"
#include "tests/e2e/cli_tools/tools_test.h"
#include "tests/support/mysql_server.h"
#include "tests/support/stub_server.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TablesCommand : public ToolsTest {
 protected:
  // Of an empty database of PostgreSQL.
  void UseOrders(const std::string& rows =
                     "table: orders, columns: {id: json:/order_id, "
                     "amount: json:/amount}") {
    if (database_.empty()) {
      database_ = "tables_" + std::to_string(++number_);
      Postgres().Exec("CREATE DATABASE " + database_);
    }
    PipelineText text = ToolsText(1, "ledger: {keep: forever}\n");
    text.tokens = false;
    text.output =
        fmt::format("output: {{postgres: {{dsn: \"{}\", {}}}}}\n", Postgres().dsn(database_), rows);
    Use(text);
  }
  // `tables ACTION FILE`: the exit code, then what it printed.
  [[nodiscard]] std::string Tables(const std::string& action,
                                   const std::vector<std::string>& more = {}) const {
    const Finished done = Tool({"tables", action}, more);
    return fmt::format("{}\n{}{}", done.exit_code, done.output, done.error_output);
  }

  std::string database_;
  static inline int number_ = 0;
};

TEST_F(TablesCommand, PlansChecksAndAppliesAndThenHasNothingToDo) {
  UseOrders();
  const std::string plan = Tables("plan");
  EXPECT_THAT(plan, AllOf(StartsWith("0\n-- "), HasSubstr("lacks:"),
                          HasSubstr("CREATE TABLE \"orders\" (\n  \"id\" text,"),
                          HasSubstr("CREATE TABLE IF NOT EXISTS fencepost_ledger (")));
  EXPECT_THAT(Tables("check"), StartsWith("1\n"));
  const std::string refused = Tables("apply");
  EXPECT_THAT(refused, AllOf(StartsWith("2\n"), HasSubstr("nobody can be asked here; --yes")));
  EXPECT_THAT(Tables("check"), StartsWith("1\n"));
  EXPECT_THAT(Tables("apply", {"--yes"}), AllOf(StartsWith("0\n"), HasSubstr("-- done")));
  EXPECT_THAT(Tables("check"), AllOf(StartsWith("0\n"), HasSubstr("has all that is needed")));
  EXPECT_THAT(Tables("apply"), StartsWith("0\n")) << "there is nothing to ask";
  Send(0, Orders::Value(1));
  RunWorker();
  EXPECT_EQ(Postgres().Value("SELECT id FROM orders", database_), Orders::Id(1));
}

TEST_F(TablesCommand, PrintsAPlanThatPsqlRuns) {
  UseOrders(
      "table: orders, types: {amount: 'numeric(12,2)'}, "
      "columns: {id: \"json:/order\\nid\", amount: json:/amount}");
  const std::string plan = Tables("plan").substr(2);
  Postgres().Exec(plan, database_);
  EXPECT_THAT(Tables("check"), StartsWith("0\n"));
}

TEST_F(TablesCommand, TakesTypesFromTheRecordsOfTheTopic) {
  UseOrders(
      "table: orders, columns: {id: json:/order_id, amount: json:/amount, "
      "at: json:/at?, lines: json:/lines?, paid: json:/paid?}");
  Send(0, R"({"order_id":"o-1","amount":12,"at":"2026-11-22T10:00:00Z","lines":[{}],"paid":true})");
  Send(0, R"({"order_id":"o-2","amount":0.5})");
  EXPECT_THAT(Tables("plan", {"--sample", "10"}),
              AllOf(HasSubstr("types are by 2 records"), HasSubstr("\"id\" text,"),
                    HasSubstr("\"amount\" numeric,"), HasSubstr("\"at\" timestamptz,"),
                    HasSubstr("\"lines\" jsonb,"), HasSubstr("\"paid\" boolean\n")));
  EXPECT_THAT(Tables("plan", {"--sample", "1"}),
              AllOf(HasSubstr("types are by 1 record\n"), HasSubstr("\"amount\" numeric,"),
                    HasSubstr("\"paid\" text\n")));
}

TEST_F(TablesCommand, TakesTypesFromTheSchemaOfTheTopic) {
  UseOrders("table: orders, columns: {id: json:/order_id, amount: json:/amount, at: json:/at}");
  const std::string schema =
      R"({"type":"record","name":"Order","fields":[{"name":"order_id","type":"long"},)"
      R"({"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}}]})";
  const nlohmann::json version = {
      {"subject", name_ + "-value"}, {"version", 1}, {"id", 7}, {"schema", schema}};
  const StubServer registry([&](const StubServer::Request& request) -> StubServer::Answer {
    const bool ours = request.line.find(name_ + "-value/versions/latest") != std::string::npos;
    return ours ? StubServer::Answer{.status = 200, .body = version.dump()}
                : StubServer::Answer{.status = 404, .body = R"({"error_code":40401})"};
  });
  std::string yaml = ReadFile(file_);
  yaml.insert(yaml.find("  start_from"), fmt::format("  decode: {{value: avro, registry: {{url: "
                                                     "\"{}\"}}}}\n",
                                                     registry.Url("/")));
  Use(yaml);
  EXPECT_THAT(Tables("plan"),
              AllOf(StartsWith("0\n"), HasSubstr("types are by the schemas of " + name_),
                    HasSubstr("\"id\" bigint,"), HasSubstr("\"at\" timestamptz"),
                    HasSubstr("amount: nothing tells what json:/amount is")));
}

TEST_F(TablesCommand, TellsOfATypeThatSamplesDoNotFit) {
  UseOrders();
  Postgres().Exec("CREATE TABLE orders (id text, amount bigint)", database_);
  Send(0, R"({"order_id":"o-1","amount":0.5})");
  EXPECT_THAT(Tables("apply", {"--yes"}), StartsWith("0\n"));
  EXPECT_THAT(Tables("check"), StartsWith("0\n"));
  EXPECT_THAT(Tables("check", {"--sample", "9"}),
              AllOf(StartsWith("1\n"), HasSubstr("-- differs: public.orders.amount is bigint, "
                                                 "and a sampled value ")));
}

TEST_F(TablesCommand, RefusesWhatHasNoTablesAndSaysWhyADatabaseIsAway) {
  UseOrders();
  PipelineText text = ToolsText();
  text.output = "output: {kafka: {topic: elsewhere}}\n";
  Use(text);
  EXPECT_THAT(Tables("plan"), AllOf(StartsWith("2\n"), HasSubstr("which has no tables")));
  text.output =
      "output: {postgres: {dsn: \"postgresql://a@127.0.0.1:1/x\", table: t, columns: {a: key}}}\n";
  Use(text);
  EXPECT_THAT(Tables("plan"), AllOf(StartsWith("1\n"), HasSubstr("127.0.0.1:1")));
}

TEST_F(TablesCommand, NeedsNoVariablesButThoseOfTheOutput) {
  UseOrders();
  const std::string yaml = std::regex_replace(ReadFile(file_), std::regex("brokers: \\[[^\\]]*\\]"),
                                              "brokers: [\"${NOT_SET_HERE}\"]");
  EXPECT_THAT(yaml, HasSubstr("NOT_SET_HERE"));
  Use(yaml);
  EXPECT_THAT(Tables("plan"), StartsWith("0\n"));
  EXPECT_THAT(Tables("plan", {"--sample", "5"}), AllOf(StartsWith("2\n"), HasSubstr("NOT_SET")));
}

// Each kind of `create` in an empty database of each kind: as it is, and its rows in MySQL and
// SQLite. A record of those that need no service goes through.
TEST_F(TablesCommand, MakesWhatEveryExampleNeeds) {
  static MysqlServer mysql;
  const std::map<std::string, std::string> kRecords = {
      {"orders", R"({"value": {"order_id": "o-1", "amount": 12.50}})"},
      {"orders-lines", R"({"value": {"id": 7, "customer": "c-1", "total": 2000, "kind": "gift",)"
                       R"( "lines": [{"sku": "pen", "price": 10.5}]}})"},
      {"cdc", R"({"key": {"id": 1}, "value": {"after": {"id": 1, "name": "Ada", "balance": "BAg=",)"
              R"( "updated_at": 0}, "source": {"lsn": 10}, "op": "c"}})"},
      {"cdc-upsert", R"({"key": "c-1", "value": {"name": "Ada"}})"},
  };
  int made = 0;
  for (const char* kind : {"orders", "orders-full", "orders-lines", "payments", "enrich", "python",
                           "cdc", "cdc-upsert"}) {
    const std::string example = RunFencepost({"create", kind}).output;
    static const std::regex kOutput("  postgres:\n    dsn: .*\n(    password: .*\n)?");
    if (!std::regex_search(example, kOutput)) continue;
    const std::string database = "example_" + std::to_string(++made);
    Postgres().Exec("CREATE DATABASE " + database);
    mysql.Exec("CREATE DATABASE " + database);
    const std::pair<const char*, std::string> outputs[] = {
        {"postgres", fmt::format("  postgres:\n    dsn: \"{}\"\n", Postgres().dsn(database))},
        {"mysql", fmt::format("  mysql:\n    host: 127.0.0.1\n    port: {}\n    user: app\n"
                              "    database: {}\n",
                              mysql.port(), database)},
        {"sqlite", fmt::format("  sqlite:\n    path: {}\n", folder_.File(database + ".db"))}};
    for (const auto& [name, output] : outputs) {
      const std::string text =
          std::regex_replace(example.substr(0, example.find("\n==>", 1)), kOutput, output);
      Use(text.substr(text.starts_with("==>") ? text.find('\n') + 1 : 0));
      EXPECT_THAT(Tables("apply", {"--yes"}), StartsWith("0\n")) << kind << name;
      EXPECT_THAT(Tables("check"), StartsWith("0\n")) << kind << name;
      const Finished lint = Tool({"lint", "--online", "--timeout", "1"});
      static const std::regex kOfOutput("(error|warning):[^\n]*(table|ledger|column|output\\.)");
      EXPECT_FALSE(std::regex_search(lint.output, kOfOutput)) << kind << name << lint.output;
      const auto record = kRecords.find(kind);
      if (record == kRecords.end()) continue;
      const Finished dev = Tool(
          {"dev"}, {"--keep-output", "--produce", folder_.Write("record.jsonl", record->second)});
      EXPECT_EQ(dev.exit_code, 0) << kind << name << dev.output << dev.error_output;
      EXPECT_THAT(dev.output, HasSubstr("1 record: 1 took effect")) << kind << name;
    }
  }
  EXPECT_EQ(made, 7);
}

}  // namespace
}  // namespace fencepost::testing
