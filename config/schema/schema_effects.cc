// The rows of handler, retry, dead_letter and output.
#include <algorithm>
#include <variant>

#include "config/schema/checks.h"
#include "config/schema/schema.h"

namespace fencepost::config {
namespace {

using namespace consumer;  // the options
using T = Type;

template <typename Kind>
constexpr auto kHandler = [](auto& o) { return std::get_if<Kind>(&o.handler.kind); };
constexpr auto kHttp = kHandler<HttpHandlerOptions>;
constexpr auto kExec = kHandler<ExecHandlerOptions>;
constexpr auto kRetry = [](auto& o) { return &o.retry; };
constexpr auto kDeadLetter = [](auto& o) { return o.dead_letter ? &*o.dead_letter : nullptr; };
template <typename Output>
constexpr auto kOutput = [](auto& o) { return std::get_if<Output>(&o.output); };

// Of the handler whose section has the key.
template <typename Kind>
constexpr auto kHandlerWith =
    [](auto& o) { return kHandler<Kind>(o) == nullptr ? nullptr : &o.handler; };

// The key chooses the handler, too.
Target JqProgram() {
  constexpr auto kJq = kHandler<JqHandlerOptions>;
  Target target = At(kJq, &JqHandlerOptions::program);
  target.store = [](const Given& given, PipelineOptions& o) {
    o.handler.kind = JqHandlerOptions{.program = given.texts.front().value};
  };
  target.same = [chosen = Chosen(kJq, nullptr), at = target](const auto& a, const auto& b) {
    return chosen.same(a, b) && at.same(a, b);
  };
  return target;
}

// What `convert` says of the columns, which come first.
template <typename Output>
Target Conversions() {
  Target target = Bind(
      Reach(kOutput<Output>, &Output::columns),
      [](const Given& given, std::vector<Column>& columns) {
        for (const Text& text : given.texts) {
          const auto column = std::ranges::find(columns, text.name, &Column::name);
          const auto conversion = ParseConversion(text.value);
          if (column != columns.end() && conversion) column->conversion = *conversion;
        }
      },
      [](const std::vector<Column>& /*columns*/) { return std::string(); });
  target.type = T::kTextMap;
  target.same = [](const PipelineOptions& a, const PipelineOptions& b) {
    const Output* const one = kOutput<Output>(a);
    const Output* const other = kOutput<Output>(b);
    return one == nullptr || other == nullptr ||
           std::ranges::equal(one->columns, other->columns, {}, &Column::conversion,
                              &Column::conversion);
  };
  return target;
}

std::vector<Key> HttpKeys() {
  return {
      {.path = "handler.http",
       .to = Chosen(kHttp, [](PipelineOptions& o) { o.handler.kind = HttpHandlerOptions(); }),
       .help = "Sends the record's value to an HTTP service; the answer's body becomes the value. "
               "Each call carries `Idempotency-Key` and `Fencing-Token`."},
      {.path = "handler.http.url",
       .to = At(kHttp, &HttpHandlerOptions::url),
       .help = "`http://…` or `https://…`.",
       .check = CheckHttpUrl,
       .required = true,
       .basic = true},
      {.path = "handler.http.method",
       .to = At(kHttp, &HttpHandlerOptions::method),
       .help = "The request method.",
       .choices = {"POST", "PUT", "PATCH", "DELETE", "GET"}},
      {.path = "handler.http.headers",
       .to = At(kHttp, &HttpHandlerOptions::headers),
       .help = "Headers that each call carries.",
       .check = CheckHttpHeader,
       .secret = true},
      {.path = "handler.http.success",
       .to = At(kHttp, &HttpHandlerOptions::success),
       .help = "Statuses that count as an answer: `200`, `2xx`.",
       .default_words = "`[2xx]`",
       .check = CheckStatus},
      {.path = "handler.http.retry_on",
       .to = At(kHttp, &HttpHandlerOptions::retry_on),
       .help = "Failures that are retried, besides `timeout` and `connection`: `408`, `429`, "
               "`5xx`. Other statuses fail at once.",
       .default_words = "`[408, 429, 5xx]`",
       .check = CheckErrorClass,
       .may_be_empty = true},
      {.path = "handler.http.idempotent",
       .to = At(kHandlerWith<HttpHandlerOptions>, &HandlerOptions::idempotent),
       .help = "Your word that the service treats a second call with the same `Idempotency-Key` as "
               "the first one. `guarantee: exactly-once` requires it.",
       .basic = true},
      {.path = "handler.http.rate_limit",
       .to = At(kHttp, &HttpHandlerOptions::rate_limit),
       .reload = Reload::kLive,
       .help = "Calls a second at most, of each worker: `50`, `0.5`. Records wait for their turn.",
       .default_words = "no limit",
       .limits = {{"0.001", "1000000"}}},
      {.path = "handler.http.tls", .help = "How the service's certificate is checked."},
      {.path = "handler.http.tls.ca",
       .to = At(kHttp, &HttpHandlerOptions::tls_ca),
       .help = "File with the certificates that are trusted, instead of the system's.",
       .required = true},
  };
}

std::vector<Key> RetryKeys() {
  return {
      {.path = "retry",
       .help = "Retries of a failed handler call. The wait is drawn from 0 to b = `initial` × "
               "`multiplier`^(attempt - 1), at most `max`; a longer `Retry-After` counts instead. "
               "Other keys do not wait. Outages of the service: "
               "[handlers](../consumer/handlers/README.md#outages)."},
      {.path = "retry.attempts",
       .to = At(kRetry, &RetryOptions::attempts),
       .reload = Reload::kLive,
       .help = "Calls at least before a record is given up: it becomes a dead letter, or the "
               "pipeline stops without `dead_letter`. `1`: no retry. A call that did not reach the "
               "service does not count.",
       .limits = {{"1", "1000"}},
       .basic = true},
      {.path = "retry.give_up_after",
       .to = At(kRetry, &RetryOptions::give_up_after),
       .reload = Reload::kLive,
       .help = "A record is not given up before it has failed for this long, without the time in "
               "which the service was unavailable for all. `0s`: after `attempts` calls.",
       .limits = {{"0s", "30d"}},
       .basic = true},
      {.path = "retry.backoff", .help = "The wait between two calls."},
      {.path = "retry.backoff.initial",
       .to = At(kRetry, &RetryOptions::initial),
       .reload = Reload::kLive,
       .help = "The first wait.",
       .limits = {{"1ms", "1h"}}},
      {.path = "retry.backoff.max",
       .to = At(kRetry, &RetryOptions::max),
       .reload = Reload::kLive,
       .help = "The longest wait.",
       .limits = {{"1ms", "1d"}}},
      {.path = "retry.backoff.multiplier",
       .to = At(kRetry, &RetryOptions::multiplier),
       .reload = Reload::kLive,
       .help = "Each wait is this many times the one before.",
       .limits = {{"1", "100"}}},
      {.path = "retry.backoff.jitter",
       .to = OneOf<Jitter>({{"full", Jitter::kFull}, {"none", Jitter::kNone}}, kRetry,
                           &RetryOptions::jitter),
       .reload = Reload::kLive,
       .help = "`full`: drawn from 0 to b; `none`: b itself."},
      {.path = "retry.never",
       .to = At(kRetry, &RetryOptions::never),
       .reload = Reload::kLive,
       .help = "Errors that are not retried: `404`, `4xx`, or a word such as `timeout`. A class "
               "that `retry_on` names exactly has priority over a hundred here.",
       .default_words = "none",
       .check = CheckErrorClass,
       .may_be_empty = true},
      {.path = "dead_letter",
       .to = Chosen(kDeadLetter, [](PipelineOptions& o) { o.dead_letter.emplace(); }),
       .help = "Where records go that cannot be processed: untouched, with headers that say why."},
      {.path = "dead_letter.topic",
       .to = At(kDeadLetter, &DeadLetterOptions::topic),
       .help = "Topic of the same cluster; none of `kafka.topics`.",
       .check = CheckTopic,
       .required = true,
       .basic = true},
      {.path = "dead_letter.max_consecutive",
       .to = At(kDeadLetter, &DeadLetterOptions::max_consecutive),
       .help = "Bad records in a row that become dead letters while none takes effect. Then the "
               "others wait and the worker is not ready until one does: what all share is a "
               "mistake in file, table or service. `0`: no limit.",
       .limits = {{"0", "1000000"}}},
      {.path = "dead_letter.on_publish_failure",
       .type = T::kChoice,
       .help = "Partitions pause until the topic takes records again; nothing is dropped.",
       .default_value = "pause",
       .choices = {"pause"}},
  };
}

// The rows that every output with a table has; those after the first are the same.
template <typename Output>
std::vector<Key> TableKeys(const std::string& output, bool required) {
  std::vector<Key> keys = {
      {.path = output + ".columns",
       .to = At(kOutput<Output>, &Output::columns),
       .help = "Column names, and the selector whose value each gets, by the column's type "
               "([types](../consumer/outputs/postgres/README.md#types)).",
       .check = CheckColumn,
       .required = required,
       .basic = true},
      {.path = output + ".on_conflict",
       .to = OneOf<OnConflict>({{"error", OnConflict::kError},
                                {"ignore", OnConflict::kIgnore},
                                {"update", OnConflict::kUpdate}},
                               kOutput<Output>, &Output::rules, &RowRules::on_conflict),
       .help = "What happens to a row that exists: the record is bad, the row is left as it is, or "
               "it is updated (by `key`).",
       .basic = true},
      {.path = output + ".key",
       .to = At(kOutput<Output>, &Output::rules, &RowRules::key),
       .help = "Columns that identify a row, under a unique index; for `update` and `delete`.",
       .check = CheckColumn,
       .basic = true},
      {.path = output + ".convert",
       .to = Conversions<Output>(),
       .help = "How a column's numbers or texts are read: `s`, `ms`, `us` or `ns` since 1970 as a "
               "point in time; `base64` or `hex` texts as bytes.",
       .check = CheckColumn},
      {.path = output + ".fence_column",
       .to = At(kOutput<Output>, &Output::rules, &RowRules::fence_column),
       .help = "With `on_conflict: update`: only a higher value of `fence_by` overwrites what this "
               "column holds. It is written with `fence_by`, in `columns` or not.",
       .check = CheckColumn},
      {.path = output + ".fence_by",
       .to = At(kOutput<Output>, &Output::rules, &RowRules::fence_by),
       .help = "What is compared: a number that grows with each change of the row, such as "
               "`offset` or `json:/version`."},
      {.path = output + ".on_null_value",
       .to = OneOf<OnNull>(
           {{"bad", OnNull::kBad}, {"skip", OnNull::kSkip}, {"delete", OnNull::kDelete}},
           kOutput<Output>, &Output::rules, &RowRules::on_null_value),
       .help = "What a tombstone does: it is a bad record, it writes no row, or it deletes the row "
               "that `key` identifies."},
      {.path = output + ".max_records",
       .to = At(kOutput<Output>, &Output::max_records),
       .help = "Records of one transaction at most. Where they take too long, the worker writes "
               "fewer at a time.",
       .limits = {{"1", "10000"}}},
  };
  const std::string first = "output.postgres";
  if (output != first) {
    for (Key& key : keys) key.same_as = first + key.path.substr(output.size());
  }
  return keys;
}

std::vector<Key> PostgresKeys() {
  return {
      {.path = "output.postgres",
       .to = Chosen(kOutput<PostgresOptions>,
                    [](PipelineOptions& o) { o.output = PostgresOptions(); }),
       .help = "PostgreSQL: exactly once per record id. Either `table` and `columns`, or "
               "`statement` and `args`.",
       .ways = {{"table", "columns"}, {"statement"}}},
      {.path = "output.postgres.dsn",
       .to = At(kOutput<PostgresOptions>, &PostgresOptions::dsn),
       .help = "Connection: `postgresql://…` or `key=value …`, as libpq takes it.",
       .check = CheckDsn,
       .required = true,
       .secret = true,
       .basic = true},
      {.path = "output.postgres.password",
       .to = At(kOutput<PostgresOptions>, &PostgresOptions::password),
       .help = "The password, taken as it is, instead of one in `dsn`.",
       .secret = true,
       .empty_text = true,
       .basic = true},
      {.path = "output.postgres.table",
       .to = At(kOutput<PostgresOptions>, &PostgresOptions::table),
       .help = "Table; may be `SCHEMA.TABLE`.",
       .check = CheckQualifiedTable,
       .basic = true},
      {.path = "output.postgres.statement",
       .to = At(kOutput<PostgresOptions>, &PostgresOptions::statement),
       .help = "One SQL statement for each row, in the ledger's transaction, instead of `table`; "
               "`$1` is the first of `args`."},
      {.path = "output.postgres.args",
       .to = At(kOutput<PostgresOptions>, &PostgresOptions::args),
       .help = "The values of the statement's parameters.",
       .may_be_empty = true},
  };
}

std::vector<Key> MysqlKeys() {
  return {
      {.path = "output.mysql",
       .to = Chosen(kOutput<MysqlOptions>, [](PipelineOptions& o) { o.output = MysqlOptions(); }),
       .help = "MySQL 8 or MariaDB 10.11: exactly once per record id."},
      {.path = "output.mysql.host",
       .to = At(kOutput<MysqlOptions>, &MysqlOptions::host),
       .help = "Host, or the path of a Unix socket.",
       .check = CheckHost,
       .required = true},
      {.path = "output.mysql.port",
       .to = At(kOutput<MysqlOptions>, &MysqlOptions::port),
       .help = "Port.",
       .limits = {{"1", "65535"}}},
      {.path = "output.mysql.user",
       .to = At(kOutput<MysqlOptions>, &MysqlOptions::user),
       .help = "Account.",
       .required = true},
      {.path = "output.mysql.password",
       .to = At(kOutput<MysqlOptions>, &MysqlOptions::password),
       .help = "Its password.",
       .secret = true,
       .empty_text = true},
      {.path = "output.mysql.database",
       .to = At(kOutput<MysqlOptions>, &MysqlOptions::database),
       .help = "Database, where the ledger is.",
       .required = true},
      {.path = "output.mysql.tls", .help = "TLS, with the server's name checked."},
      {.path = "output.mysql.tls.ca",
       .to = At(kOutput<MysqlOptions>, &MysqlOptions::tls_ca),
       .help = "File with the CA certificates that the server's is checked with."},
      {.path = "output.mysql.tls.certificate",
       .to = At(kOutput<MysqlOptions>, &MysqlOptions::tls_certificate),
       .help = "File with the client's certificate; with `key`."},
      {.path = "output.mysql.tls.key",
       .to = At(kOutput<MysqlOptions>, &MysqlOptions::tls_key),
       .help = "File with the client's key; with `certificate`."},
      {.path = "output.mysql.table",
       .to = At(kOutput<MysqlOptions>, &MysqlOptions::table),
       .help = "Table; may be `DATABASE.TABLE`.",
       .check = CheckQualifiedTable,
       .required = true},
  };
}

std::vector<Key> SqliteKeys() {
  return {
      {.path = "output.sqlite",
       .to = Chosen(kOutput<SqliteOptions>, [](PipelineOptions& o) { o.output = SqliteOptions(); }),
       .help = "SQLite, for workers on one host: exactly once per record id."},
      {.path = "output.sqlite.path",
       .to = At(kOutput<SqliteOptions>, &SqliteOptions::path),
       .help = "Database file.",
       .required = true},
      {.path = "output.sqlite.table",
       .to = At(kOutput<SqliteOptions>, &SqliteOptions::table),
       .help = "Table.",
       .check = CheckTable,
       .required = true},
  };
}

std::vector<Key> LineKeys() {
  return {
      {.path = "output.file",
       .to = Chosen(kOutput<FileOptions>, [](PipelineOptions& o) { o.output = FileOptions(); }),
       .help = "JSON lines into a file: at least once."},
      {.path = "output.file.path",
       .to = At(kOutput<FileOptions>, &FileOptions::path),
       .help = "File; it is appended to.",
       .required = true},
      {.path = "output.file.columns",
       .to = At(kOutput<FileOptions>, &FileOptions::columns),
       .help = "Names in each line's object, and the selector whose value each gets.",
       .default_words = "the record with its position, key, headers and value"},
      {.path = "output.stdout",
       .to = Chosen(kOutput<StdoutOptions>, [](PipelineOptions& o) { o.output = StdoutOptions(); }),
       .help = "JSON lines to standard output: at least once. `stdout: {}` will do."},
      {.path = "output.stdout.columns",
       .to = At(kOutput<StdoutOptions>, &StdoutOptions::columns),
       .help = "Names in each line's object, and the selector whose value each gets.",
       .default_words = "the record with its position, key, headers and value"},
  };
}

}  // namespace

std::vector<Key> HandlerKeys() {
  std::vector<Key> keys = {
      {.path = "handler",
       .help = "What is done to a record before it is written; without a handler it passes "
               "through. `http` and `exec` may run more than once for a record.",
       .one_child = true},
  };
  Append(keys, HttpKeys());
  Append(
      keys,
      {{.path = "handler.exec",
        .to = Chosen(kExec, [](PipelineOptions& o) { o.handler.kind = ExecHandlerOptions(); }),
        .help = "Long-lived processes that read one JSON object a line and answer with one."},
       {.path = "handler.exec.command",
        .to = At(kExec, &ExecHandlerOptions::command),
        .help = "Program and arguments; no shell. Relative paths start at the working directory.",
        .required = true,
        .basic = true},
       {.path = "handler.exec.processes",
        .to = At(kExec, &ExecHandlerOptions::processes),
        .help = "How many run at a time.",
        .limits = {{"1", "1024"}}},
       {.path = "handler.exec.idempotent",
        .to = At(kHandlerWith<ExecHandlerOptions>, &HandlerOptions::idempotent),
        .help = "Your word that a second run for the same `record_id` has no second effect. "
                "`guarantee: exactly-once` requires it."},
       {.path = "handler.jq",
        .to = JqProgram(),
        .help =
            "A jq program. Several results are several rows under one record id, none is no row.",
        .basic = true}});
  Append(keys, RetryKeys());
  return keys;
}

std::vector<Key> OutputKeys() {
  std::vector<Key> keys = {
      {.path = "output",
       .help = "Where effects are written; exactly one.",
       .required = true,
       .one_child = true},
  };
  Append(keys, PostgresKeys());
  Append(keys, TableKeys<PostgresOptions>("output.postgres", false));
  Append(keys, MysqlKeys());
  Append(keys, TableKeys<MysqlOptions>("output.mysql", true));
  Append(keys, SqliteKeys());
  Append(keys, TableKeys<SqliteOptions>("output.sqlite", true));
  Append(keys, KafkaOutputKeys());
  Append(keys, LineKeys());
  return keys;
}

}  // namespace fencepost::config
