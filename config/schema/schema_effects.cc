// The rows of output.
#include <algorithm>
#include <type_traits>
#include <variant>

#include "config/schema/checks.h"
#include "config/schema/schema.h"
#include "config/schema/schema_lists.h"

namespace fencepost::config {
namespace {

using namespace consumer;  // the options
using T = Type;

template <typename Output>
constexpr auto kOutput = [](auto& o) { return std::get_if<Output>(&o.output); };
template <typename Output>
const auto kEffect = LastOf(kOutput<Output>, &Output::effects);

// What `convert` says of the columns, which come first.
template <typename Rows, typename Section>
Target Conversions(Section section) {
  Target target = Bind(
      Reach(section, &Rows::columns),
      [](const Given& given, std::vector<Column>& columns) {
        for (const Text& text : given.texts) {
          const auto column = std::ranges::find(columns, text.name, &Column::name);
          const auto conversion = ParseConversion(text.value);
          if (column == columns.end() || !conversion) continue;
          column->conversion = conversion->conversion;
          column->scale = conversion->scale;
        }
      },
      [](const std::vector<Column>& /*columns*/) { return std::string(); });
  target.type = T::kTextMap;
  target.same = [section](const PipelineOptions& a, const PipelineOptions& b) {
    const Rows* const one = section(a);
    const Rows* const other = section(b);
    const auto read = [](const Column& c) { return ConversionOf{c.conversion, c.scale}; };
    return one == nullptr || other == nullptr ||
           std::ranges::equal(one->columns, other->columns, {}, read, read);
  };
  return target;
}

constexpr auto CheckColumnOf(const PostgresOptions*) { return CheckPostgresColumn; }
constexpr auto CheckColumnOf(const MysqlOptions*) { return CheckMysqlColumn; }
constexpr auto CheckColumnOf(const SqliteOptions*) { return CheckSqliteColumn; }

constexpr const char* kFirst = "output.postgres";

// What rows go into a table, and what they do there: of an output with one effect, or of each of
// its effects (`Rows`, which `section` reaches). Those after the first are the same.
template <typename Output, typename Rows, typename Section>
std::vector<Key> RowKeys(const std::string& path, Section section) {
  const KeysOf rows(path, section);
  constexpr auto kCheckColumn = CheckColumnOf(static_cast<const Output*>(nullptr));
  std::vector<Key> keys = {
      rows("columns", &Rows::columns,
           "Column names, and the selector whose value each gets "
           "([types](../consumer/outputs/postgres/README.md#types)). Where nothing is found, `?` "
           "gives null; `?default` leaves the column out: its DEFAULT in a new row, unchanged in "
           "an old one.",
           {.check = kCheckColumn, .basic = true}),
      rows("on_conflict",
           OneOf<OnConflict>({{"error", OnConflict::kError},
                              {"ignore", OnConflict::kIgnore},
                              {"update", OnConflict::kUpdate}},
                             section, &Rows::rules, &RowRules::on_conflict),
           "What happens to a row that exists: the record is bad, the row is left as it is, or it "
           "is updated (by `key`).",
           {.basic = true}),
      rows("key", At(section, &Rows::rules, &RowRules::key),
           "Columns that identify a row, under a unique index; for `update` and `delete`.",
           {.check = kCheckColumn, .basic = true}),
      rows("convert", Conversions<Rows>(section),
           "How a column's values are read, and an array's elements. Numbers: `d` (days), `s`, "
           "`ms`, `us`, `ns` since 1970, or midnight; `bool`. Texts: `json`, `base64`, `hex`, "
           "`decimal:SCALE` or `{decimal: SCALE}`. `{scale, value}`: `decimal`. Bytes of a key: "
           "`int32`, `int64`.",
           {.check = kCheckColumn, .pairs = true}),
      rows("fence_column", At(section, &Rows::rules, &RowRules::fence_column),
           "With `on_conflict: update`: only a higher value of `fence_by` overwrites what this "
           "column holds. It is written with `fence_by`, in `columns` or not.",
           {.check = kCheckColumn}),
      rows("fence_by", At(section, &Rows::rules, &RowRules::fence_by),
           "What is compared: a version of the source that grows with each change of the row, such "
           "as `json:/source/lsn`, `json:/ts_us`, `header:NAME`. Not `offset`: it orders one "
           "partition's log only."),
      rows("on_null_value",
           OneOf<OnNull>(
               {{"bad", OnNull::kBad}, {"skip", OnNull::kSkip}, {"delete", OnNull::kDelete}},
               section, &Rows::rules, &RowRules::on_null_value),
           "What a tombstone does: it is a bad record, it writes no row, or it deletes the row "
           "that `key` identifies."),
      rows(
          "keep", At(section, &Rows::rules, &RowRules::keep),
          "Texts that stand for an unchanged value, such as `__debezium_unavailable_value`: a cell "
          "that is nothing else, in any form that Debezium gives it, leaves its column as it is, "
          "as `?default` does for one that is not there."),
      rows("types", At(section, &Rows::rules, &RowRules::types),
           "Types of columns in SQL, for `fencepost tables` and `create`. Otherwise they are by "
           "`convert`, an Avro schema, `--sample`, the selector, or text.",
           {.check = kCheckColumn}),
  };
  for (Key& key : keys) {
    if (path != kFirst) key.same_as = kFirst + key.path.substr(path.size());
  }
  return keys;
}

constexpr auto CheckTableOf(const PostgresOptions*) { return CheckPostgresTable; }
constexpr auto CheckTableOf(const MysqlOptions*) { return CheckMysqlTable; }
constexpr auto CheckTableOf(const SqliteOptions*) { return CheckSqliteTable; }

// Several effects of a record.
template <typename Output>
std::vector<Key> EffectKeys(const std::string& output) {
  const std::string path = output + ".effects";
  const auto section = kEffect<Output>;
  const KeysOf effect(path, section);
  constexpr auto kCheckTable = CheckTableOf(static_cast<const Output*>(nullptr));
  std::vector<Key> keys = {
      effect("table", &Effect::table,
             "Table; or a map, by which the record chooses one: `by` a selector, whose texts `of` "
             "maps to tables, and `otherwise`.",
             {.check = kCheckTable, .or_section = true}),
      effect("each", &Effect::each,
             "An array: the effect has a row for each of its elements, which `json:` and `value` "
             "read; `index` is the element's place from 0 on, and `record./POINTER` reads the "
             "whole value."),
      effect("when", At(section, &Effect::when),
             "Which values have this effect, as `when` of the pipeline: of the whole value, also "
             "beside `each`.",
             {.or_texts = true, .lines = true}),
  };
  Append(keys, RouteKeys(path + ".table", section));
  if constexpr (std::is_same_v<Output, PostgresOptions>) {
    keys.push_back(effect("statement", &Effect::statement, "As `output.postgres.statement`.",
                          {.lines = true}));
    keys.push_back(effect("args", &Effect::args, "The values of the statement's parameters.",
                          {.may_be_empty = true}));
  }
  for (Key& key : keys) {
    if (output != kFirst)
      key.same_as = std::string(kFirst) + ".effects" + key.path.substr(path.size());
  }
  Append(keys, RowKeys<Output, Effect>(path, section));
  keys = OfList(std::move(keys));
  keys.insert(keys.begin(),
              effect("", ListTarget(kOutput<Output>, &Output::effects),
                     "Several effects of a record, in this order and one transaction, instead of "
                     "`table` and `columns`: a list, each with a table, or a statement. A record "
                     "makes 10,000 rows at most.",
                     {.ways = {{"table", "columns"}, {"statement"}}}));
  return keys;
}

template <typename Output>
std::vector<Key> TableKeys(const std::string& output) {
  std::vector<Key> keys = RowKeys<Output, Output>(output, kOutput<Output>);
  const KeysOf rows(output, kOutput<Output>);
  std::vector<Key> more = {
      rows("create", &Output::create,
           "Runs at the start what `fencepost tables apply` would: for development. `fencepost dev "
           "--keep-output` has it on."),
      rows("max_records", &Output::max_records,
           "Records of one transaction at most. Where they take too long, the worker writes fewer "
           "at a time.",
           {.limits = {{"1", "10000"}}}),
  };
  for (Key& key : more) {
    if (output != kFirst) key.same_as = kFirst + key.path.substr(output.size());
  }
  Append(keys, std::move(more));
  Append(keys, EffectKeys<Output>(output));
  return keys;
}

std::vector<Key> PostgresKeys() {
  const KeysOf postgres("output.postgres", kOutput<PostgresOptions>);
  return {
      postgres("",
               Chosen(kOutput<PostgresOptions>,
                      [](PipelineOptions& o) { o.output = PostgresOptions(); }),
               "PostgreSQL: exactly once per record id. Either `table` and `columns`, or "
               "`statement` and `args`, or `effects`.",
               {.ways = {{"table", "columns"}, {"statement"}, {"effects"}}}),
      postgres("dsn", &PostgresOptions::dsn,
               "Connection: `postgresql://…` or `key=value …`, as libpq takes it. Needed without "
               "`host`. What it says has none of the keys below.",
               {.check = CheckDsn, .secret = true, .basic = true}),
      postgres("host", &PostgresOptions::host, "Host, or the path of a Unix socket's folder.",
               {.check = CheckHost, .basic = true}),
      postgres("port", &PostgresOptions::port, "Port.",
               {.default_words = "libpq's own: 5432", .limits = {{"1", "65535"}}}),
      postgres("user", &PostgresOptions::user, "Role."),
      postgres("password", &PostgresOptions::password, "Its password, taken as it is.",
               {.empty_text = true, .basic = true}),
      postgres("database", &PostgresOptions::database, "Database, where the ledger is."),
      postgres("sslmode", &PostgresOptions::sslmode,
               "TLS. Certificates: `sslrootcert` and the like in `dsn`.",
               {.default_words = "libpq's own: `prefer`",
                .choices = {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}}),
      postgres(
          "table", &PostgresOptions::table,
          "Table, as it is written in the database; may be `SCHEMA.TABLE`, and quoted (`\"a.b\"`).",
          {.check = CheckPostgresTable, .basic = true}),
      postgres("statement", &PostgresOptions::statement,
               "One SQL statement for each row, in the ledger's transaction, instead of `table`; "
               "`$1` is the first of `args`.",
               {.lines = true}),
      postgres("args", &PostgresOptions::args, "The values of the statement's parameters.",
               {.may_be_empty = true}),
  };
}

std::vector<Key> MysqlKeys() {
  const KeysOf mysql("output.mysql", kOutput<MysqlOptions>);
  return {
      mysql(
          "", Chosen(kOutput<MysqlOptions>, [](PipelineOptions& o) { o.output = MysqlOptions(); }),
          "MariaDB 10.11, or MySQL 8 (not tested): exactly once per record id. Either `table` and "
          "`columns`, or `effects`.",
          {.ways = {{"table", "columns"}, {"effects"}}}),
      mysql("host", &MysqlOptions::host, "Host, or the path of a Unix socket.",
            {.check = CheckHost, .required = true}),
      mysql("port", &MysqlOptions::port, "Port.", {.limits = {{"1", "65535"}}}),
      mysql("user", &MysqlOptions::user, "Account.", {.required = true}),
      mysql("password", &MysqlOptions::password, "Its password.", {.empty_text = true}),
      mysql("database", &MysqlOptions::database, "Database, where the ledger is.",
            {.required = true}),
      mysql("tls", &MysqlOptions::tls,
            "TLS, with the server's name checked. `{}`: by the system's CAs."),
      mysql("tls.ca", &MysqlOptions::tls_ca,
            "File with the CA certificates that the server's is checked with.",
            {.default_words = "the system's"}),
      mysql("tls.certificate", &MysqlOptions::tls_certificate,
            "File with the client's certificate; with `key`."),
      mysql("tls.key", &MysqlOptions::tls_key, "File with the client's key; with `certificate`."),
      mysql("table", &MysqlOptions::table, "Table; may be `DATABASE.TABLE`, and quoted.",
            {.check = CheckMysqlTable}),
  };
}

std::vector<Key> SqliteKeys() {
  const KeysOf sqlite("output.sqlite", kOutput<SqliteOptions>);
  return {
      sqlite("",
             Chosen(kOutput<SqliteOptions>, [](PipelineOptions& o) { o.output = SqliteOptions(); }),
             "SQLite, for workers on one host: exactly once per record id. Either `table` and "
             "`columns`, or `effects`.",
             {.ways = {{"table", "columns"}, {"effects"}}}),
      sqlite("path", &SqliteOptions::path, "Database file.", {.required = true}),
      sqlite("table", &SqliteOptions::table, "Table.", {.check = CheckSqliteTable}),
  };
}

std::vector<Key> LineKeys() {
  const KeysOf file("output.file", kOutput<FileOptions>);
  const KeysOf lines("output.stdout", kOutput<StdoutOptions>);
  return {
      file("", Chosen(kOutput<FileOptions>, [](PipelineOptions& o) { o.output = FileOptions(); }),
           "JSON lines into a file: at least once."),
      file("path", &FileOptions::path, "File; it is appended to.", {.required = true}),
      file("columns", &FileOptions::columns,
           "Names in each line's object, and the selector whose value each gets.",
           {.default_words = "the record with its position, key, headers and value"}),
      lines("",
            Chosen(kOutput<StdoutOptions>, [](PipelineOptions& o) { o.output = StdoutOptions(); }),
            "JSON lines to standard output: at least once. `stdout: {}` will do."),
      lines("columns", &StdoutOptions::columns,
            "Names in each line's object, and the selector whose value each gets.",
            {.default_words = "the record with its position, key, headers and value"}),
  };
}

}  // namespace

std::vector<Key> OutputKeys() {
  const KeysOf output("output");
  std::vector<Key> keys = {
      output("", "Where effects are written; exactly one.", {.required = true, .one_child = true}),
  };
  Append(keys, PostgresKeys());
  Append(keys, TableKeys<PostgresOptions>("output.postgres"));
  Append(keys, MysqlKeys());
  Append(keys, TableKeys<MysqlOptions>("output.mysql"));
  Append(keys, SqliteKeys());
  Append(keys, TableKeys<SqliteOptions>("output.sqlite"));
  Append(keys, KafkaOutputKeys());
  Append(keys, LineKeys());
  return keys;
}

}  // namespace fencepost::config
