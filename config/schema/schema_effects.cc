// The rows of handler, retry, dead_letter and output.
#include "config/schema/checks.h"
#include "config/schema/schema.h"

namespace fencepost::config {
namespace {

using T = Type;

std::vector<Key> HttpKeys() {
  return {
      {.path = "handler.http",
       .type = T::kSection,
       .help = "Sends the record's value to an HTTP service; the answer's body becomes the value. "
               "Each call carries `Idempotency-Key` and `Fencing-Token`."},
      {.path = "handler.http.url",
       .help = "`http://…` or `https://…`.",
       .check = CheckHttpUrl,
       .required = true,
       .basic = true},
      {.path = "handler.http.method",
       .type = T::kChoice,
       .help = "The request method.",
       .default_value = "POST",
       .choices = {"POST", "PUT", "PATCH", "DELETE", "GET"}},
      {.path = "handler.http.headers",
       .type = T::kTextMap,
       .help = "Headers that each call carries.",
       .check = CheckHttpHeader,
       .secret = true},
      {.path = "handler.http.success",
       .type = T::kTexts,
       .help = "Statuses that count as an answer: `200`, `2xx`.",
       .default_words = "`[2xx]`",
       .check = CheckStatus},
      {.path = "handler.http.retry_on",
       .type = T::kTexts,
       .help = "Failures that are retried, besides `timeout` and `connection`: `408`, `429`, "
               "`5xx`. Other statuses fail at once.",
       .default_words = "`[408, 429, 5xx]`",
       .check = CheckErrorClass,
       .may_be_empty = true},
      {.path = "handler.http.idempotent",
       .type = T::kBoolean,
       .help = "Your word that the service treats a second call with the same `Idempotency-Key` as "
               "the first one. `guarantee: exactly-once` requires it.",
       .default_value = "false",
       .basic = true},
      {.path = "handler.http.rate_limit",
       .type = T::kDecimal,
       .help = "Calls a second at most, of each worker: `50`, `0.5`. Records wait for their turn.",
       .default_words = "no limit",
       .limits = {{"0.001", "1000000"}}},
      {.path = "handler.http.tls",
       .type = T::kSection,
       .help = "How the service's certificate is checked."},
      {.path = "handler.http.tls.ca",
       .help = "File with the certificates that are trusted, instead of the system's.",
       .check = CheckNotEmpty,
       .required = true},
  };
}

std::vector<Key> RetryKeys() {
  return {
      {.path = "retry",
       .type = T::kSection,
       .help = "Retries of a failed handler call. The wait is drawn from 0 to b = `initial` × "
               "`multiplier`^(attempt - 1), at most `max`; a longer `Retry-After` counts instead. "
               "Other keys do not wait. Outages of the service: "
               "[handlers](../consumer/handlers/README.md#outages)."},
      {.path = "retry.attempts",
       .type = T::kInteger,
       .help = "Calls at least before a record is given up: it becomes a dead letter, or the "
               "pipeline stops without `dead_letter`. `1`: no retry. A call that did not reach the "
               "service does not count.",
       .default_value = "5",
       .limits = {{"1", "1000"}},
       .basic = true},
      {.path = "retry.give_up_after",
       .type = T::kDuration,
       .help = "A record is not given up before it has failed for this long, without the time in "
               "which the service was unavailable for all. `0s`: after `attempts` calls.",
       .default_value = "15m",
       .limits = {{"0s", "30d"}},
       .basic = true},
      {.path = "retry.backoff", .type = T::kSection, .help = "The wait between two calls."},
      {.path = "retry.backoff.initial",
       .type = T::kDuration,
       .help = "The first wait.",
       .default_value = "100ms",
       .limits = {{"1ms", "1h"}}},
      {.path = "retry.backoff.max",
       .type = T::kDuration,
       .help = "The longest wait.",
       .default_value = "10s",
       .limits = {{"1ms", "1d"}}},
      {.path = "retry.backoff.multiplier",
       .type = T::kDecimal,
       .help = "Each wait is this many times the one before.",
       .default_value = "2",
       .limits = {{"1", "100"}}},
      {.path = "retry.backoff.jitter",
       .type = T::kChoice,
       .help = "`full`: drawn from 0 to b; `none`: b itself.",
       .default_value = "full",
       .choices = {"full", "none"}},
      {.path = "retry.never",
       .type = T::kTexts,
       .help = "Errors that are not retried: `404`, `4xx`, or a word such as `timeout`. A class "
               "that `retry_on` names exactly has priority over a hundred here.",
       .default_words = "none",
       .check = CheckErrorClass,
       .may_be_empty = true},
      {.path = "dead_letter",
       .type = T::kSection,
       .help = "Where records go that cannot be processed: untouched, with headers that say why."},
      {.path = "dead_letter.topic",
       .help = "Topic of the same cluster; none of `kafka.topics`.",
       .check = CheckTopic,
       .required = true,
       .basic = true},
      {.path = "dead_letter.max_consecutive",
       .type = T::kInteger,
       .help = "Bad records in a row that become dead letters while none takes effect. Then the "
               "others wait and the worker is not ready until one does: what all share is a "
               "mistake in file, table or service. `0`: no limit.",
       .default_value = "10",
       .limits = {{"0", "1000000"}}},
      {.path = "dead_letter.on_publish_failure",
       .type = T::kChoice,
       .help = "Partitions pause until the topic takes records again; nothing is dropped.",
       .default_value = "pause",
       .choices = {"pause"}},
  };
}

// The rows that every output with a table has; those after the first are the same.
std::vector<Key> TableKeys(const std::string& output, bool required) {
  std::vector<Key> keys = {
      {.path = output + ".columns",
       .type = T::kSelectorMap,
       .help = "Column names, and the selector whose value each gets, by the column's type "
               "([types](../consumer/outputs/postgres/README.md#types)).",
       .check = CheckColumn,
       .required = required,
       .basic = true},
      {.path = output + ".on_conflict",
       .type = T::kChoice,
       .help = "What happens to a row that exists: the record is bad, the row is left as it is, or "
               "it is updated (by `key`).",
       .default_value = "error",
       .choices = {"error", "ignore", "update"},
       .basic = true},
      {.path = output + ".key",
       .type = T::kTexts,
       .help = "Columns that identify a row, under a unique index; for `update` and `delete`.",
       .check = CheckColumn,
       .basic = true},
      {.path = output + ".convert",
       .type = T::kTextMap,
       .help = "How a column's numbers or texts are read: `s`, `ms`, `us` or `ns` since 1970 as a "
               "point in time; `base64` or `hex` texts as bytes.",
       .check = CheckColumn},
      {.path = output + ".fence_column",
       .help = "With `on_conflict: update`: only a higher value of `fence_by` overwrites what this "
               "column holds. It is written with `fence_by`, in `columns` or not.",
       .check = CheckColumn},
      {.path = output + ".fence_by",
       .type = T::kSelector,
       .help = "What is compared: a number that grows with each change of the row, such as "
               "`offset` or `json:/version`."},
      {.path = output + ".on_null_value",
       .type = T::kChoice,
       .help = "What a tombstone does: it is a bad record, it writes no row, or it deletes the row "
               "that `key` identifies.",
       .default_value = "bad",
       .choices = {"bad", "skip", "delete"}},
      {.path = output + ".max_records",
       .type = T::kInteger,
       .help = "Records of one transaction at most. Where they take too long, the worker writes "
               "fewer at a time.",
       .default_value = "500",
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
       .type = T::kSection,
       .help = "PostgreSQL: exactly once per record id. Either `table` and `columns`, or "
               "`statement` and `args`.",
       .ways = {{"table", "columns"}, {"statement"}}},
      {.path = "output.postgres.dsn",
       .help = "Connection: `postgresql://…` or `key=value …`, as libpq takes it.",
       .check = CheckDsn,
       .required = true,
       .secret = true,
       .basic = true},
      {.path = "output.postgres.password",
       .help = "The password, taken as it is, instead of one in `dsn`.",
       .secret = true,
       .basic = true},
      {.path = "output.postgres.table",
       .help = "Table; may be `SCHEMA.TABLE`.",
       .check = CheckQualifiedTable,
       .basic = true},
      {.path = "output.postgres.statement",
       .help = "One SQL statement for each row, in the ledger's transaction, instead of `table`; "
               "`$1` is the first of `args`.",
       .check = CheckNotEmpty},
      {.path = "output.postgres.args",
       .type = T::kSelectors,
       .help = "The values of the statement's parameters.",
       .may_be_empty = true},
  };
}

std::vector<Key> MysqlKeys() {
  return {
      {.path = "output.mysql",
       .type = T::kSection,
       .help = "MySQL 8 or MariaDB 10.11: exactly once per record id."},
      {.path = "output.mysql.host",
       .help = "Host, or the path of a Unix socket.",
       .check = CheckHost,
       .required = true},
      {.path = "output.mysql.port",
       .type = T::kInteger,
       .help = "Port.",
       .default_value = "3306",
       .limits = {{"1", "65535"}}},
      {.path = "output.mysql.user", .help = "Account.", .check = CheckNotEmpty, .required = true},
      {.path = "output.mysql.password", .help = "Its password.", .secret = true},
      {.path = "output.mysql.database",
       .help = "Database, where the ledger is.",
       .check = CheckNotEmpty,
       .required = true},
      {.path = "output.mysql.tls",
       .type = T::kSection,
       .help = "TLS, with the server's name checked."},
      {.path = "output.mysql.tls.ca",
       .help = "File with the CA certificates that the server's is checked with.",
       .check = CheckNotEmpty},
      {.path = "output.mysql.tls.certificate",
       .help = "File with the client's certificate.",
       .check = CheckNotEmpty},
      {.path = "output.mysql.tls.key",
       .help = "File with the client's key.",
       .check = CheckNotEmpty},
      {.path = "output.mysql.table",
       .help = "Table; may be `DATABASE.TABLE`.",
       .check = CheckQualifiedTable,
       .required = true},
  };
}

std::vector<Key> SqliteKeys() {
  return {
      {.path = "output.sqlite",
       .type = T::kSection,
       .help = "SQLite, for workers on one host: exactly once per record id."},
      {.path = "output.sqlite.path",
       .help = "Database file.",
       .check = CheckNotEmpty,
       .required = true},
      {.path = "output.sqlite.table", .help = "Table.", .check = CheckTable, .required = true},
  };
}

std::vector<Key> KafkaOutputKeys() {
  return {
      {.path = "output.kafka",
       .type = T::kSection,
       .help = "A topic of the same cluster, in transactions with the offsets: each input "
               "position's output exactly once for `read_committed` readers."},
      {.path = "output.kafka.topic",
       .help = "Topic; none of `kafka.topics`.",
       .check = CheckTopic,
       .required = true,
       .basic = true},
      {.path = "output.kafka.key",
       .type = T::kSelector,
       .help = "The key that is written.",
       .default_value = "key?"},
      {.path = "output.kafka.value",
       .type = T::kSelector,
       .help = "The value that is written.",
       .default_value = "value?"},
      {.path = "output.kafka.headers",
       .type = T::kSelectorMap,
       .help = "Header names, and the selector whose value each gets.",
       .check = CheckNotEmpty,
       .may_be_empty = true},
      {.path = "output.kafka.transaction_timeout",
       .type = T::kDuration,
       .help = "A worker that dies delays `read_committed` readers for up to this long.",
       .default_value = "10s",
       .limits = {{"1s", "15m"}}},
      {.path = "output.kafka.linger",
       .type = T::kDuration,
       .help = "A transaction ends when its oldest record is this old, or when it is full.",
       .default_value = "100ms",
       .limits = {{"1ms", "1m"}}},
      {.path = "output.kafka.max_records",
       .type = T::kInteger,
       .help = "Records of one transaction; then it is full.",
       .default_value = "10000",
       .limits = {{"1", "500000"}}},
  };
}

std::vector<Key> LineKeys() {
  return {
      {.path = "output.file",
       .type = T::kSection,
       .help = "JSON lines into a file: at least once."},
      {.path = "output.file.path",
       .help = "File; it is appended to.",
       .check = CheckNotEmpty,
       .required = true},
      {.path = "output.file.columns",
       .type = T::kSelectorMap,
       .help = "Names in each line's object, and the selector whose value each gets.",
       .default_words = "the record with its position, key, headers and value",
       .check = CheckNotEmpty},
      {.path = "output.stdout",
       .type = T::kSection,
       .help = "JSON lines to standard output: at least once. `stdout: {}` will do."},
      {.path = "output.stdout.columns",
       .type = T::kSelectorMap,
       .help = "Names in each line's object, and the selector whose value each gets.",
       .default_words = "the record with its position, key, headers and value",
       .check = CheckNotEmpty},
  };
}

void Append(std::vector<Key>& keys, std::vector<Key> more) {
  keys.insert(keys.end(), more.begin(), more.end());
}

}  // namespace

std::vector<Key> HandlerKeys() {
  std::vector<Key> keys = {
      {.path = "handler",
       .type = T::kSection,
       .help = "What is done to a record before it is written; without a handler it passes "
               "through. `http` and `exec` may run more than once for a record.",
       .one_child = true},
  };
  Append(keys, HttpKeys());
  Append(
      keys,
      {{.path = "handler.exec",
        .type = T::kSection,
        .help = "Long-lived processes that read one JSON object a line and answer with one."},
       {.path = "handler.exec.command",
        .type = T::kTexts,
        .help = "Program and arguments; no shell. Relative paths start at the working directory.",
        .required = true,
        .basic = true},
       {.path = "handler.exec.processes",
        .type = T::kInteger,
        .help = "How many run at a time.",
        .default_value = "4",
        .limits = {{"1", "1024"}}},
       {.path = "handler.exec.idempotent",
        .type = T::kBoolean,
        .help = "Your word that a second run for the same `record_id` has no second effect. "
                "`guarantee: exactly-once` requires it.",
        .default_value = "false"},
       {.path = "handler.jq",
        .help =
            "A jq program. Several results are several rows under one record id, none is no row.",
        .check = CheckNotEmpty,
        .basic = true}});
  Append(keys, RetryKeys());
  return keys;
}

std::vector<Key> OutputKeys() {
  std::vector<Key> keys = {
      {.path = "output",
       .type = T::kSection,
       .help = "Where effects are written; exactly one.",
       .required = true,
       .one_child = true},
  };
  Append(keys, PostgresKeys());
  Append(keys, TableKeys("output.postgres", false));
  Append(keys, MysqlKeys());
  Append(keys, TableKeys("output.mysql", true));
  Append(keys, SqliteKeys());
  Append(keys, TableKeys("output.sqlite", true));
  Append(keys, KafkaOutputKeys());
  Append(keys, EncodeKeys());
  Append(keys, LineKeys());
  return keys;
}

}  // namespace fencepost::config
