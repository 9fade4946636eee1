// Everything a pipeline file can say, as plain values; config/ fills them, consumer/ works by them.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "consumer/pipeline/error_class.h"
#include "consumer/record/dead_letter.h"
#include "consumer/record/identity.h"
#include "consumer/record/selector.h"
#include "locking/core/options.h"
#include "locking/redis/options.h"

namespace fencepost::consumer {

class Handler;  // consumer/handlers/handler.h

enum class Guarantee : std::uint8_t { kExactlyOnce, kAtLeastOnce };
enum class StartFrom : std::uint8_t { kEarliest, kLatest };
enum class Order : std::uint8_t { kPartition, kKey, kNone };
enum class OnBad : std::uint8_t { kStop, kDeadLetter, kSkip };  // skip: on_id_conflict only
enum class OnConflict : std::uint8_t { kError, kIgnore, kUpdate };
enum class OnNull : std::uint8_t { kBad, kSkip, kDelete };
enum class Jitter : std::uint8_t { kFull, kNone };

// How keys or values are written in Kafka. kJson and kBytes are taken as they are, kJsonSchema
// without the header of Confluent's wire format; the others become JSON by their schema.
enum class RecordFormat : std::uint8_t { kAvro, kProtobuf, kJsonSchema, kJson, kBytes };

struct RegistryOptions {
  std::string url;  // empty: no format needs one
  std::string username, password;
  std::string tls_ca;  // a path; empty: the system's
};

struct DecodeOptions {
  RecordFormat value = RecordFormat::kJson;
  RecordFormat key = RecordFormat::kJson;
  RegistryOptions registry;
  static bool IsWireFormat(RecordFormat format) { return format <= RecordFormat::kJsonSchema; }
  [[nodiscard]] bool Needed() const { return IsWireFormat(value) || IsWireFormat(key); }
};

// OAUTHBEARER by OIDC's client credentials grant (RFC 6749, 4.4); empty: not used.
struct OauthOptions {
  std::string token_url, client_id, client_secret, scope, extensions;
};

struct KafkaOptions {
  std::vector<std::string> brokers;
  std::vector<std::string> topics;
  std::string group;  // default: the pipeline's name
  StartFrom start_from = StartFrom::kEarliest;
  Millis commit_interval{1000};
  bool static_members = false;                   // group.instance.id is the worker's name (KIP-345)
  bool tls = false;                              // without a CA by the system's
  std::string tls_ca, tls_certificate, tls_key;  // paths; empty: not used
  std::string sasl_mechanism, sasl_username, sasl_password;
  OauthOptions oauth;
  std::map<std::string, std::string> librdkafka;  // passed through
  DecodeOptions decode;
};

// What records do while no quorum of lock nodes is available.
enum class OnUnavailable : std::uint8_t {
  kPause,
  kProceed,  // they go on without a lease, and the ledger decides
};

struct LockSection {
  locking::LockOptions lock;    // ttl, min_validity, max_skew, node_timeout, remember_done, contact
  locking::RedisOptions redis;  // the nodes, and how to reach them
  Millis wait{30'000};          // then the record is parked and tried again
  std::int64_t block = 1;       // neighbouring offsets that share a lock (LockBlock)
  OnUnavailable on_unavailable = OnUnavailable::kPause;
};

struct ProcessingOptions {
  Order order = Order::kKey;
  int concurrency = 64;                             // handler calls at a time
  int max_in_flight = 4096;                         // unfinished records
  std::uint64_t max_in_flight_bytes = 64ull << 20;  // that they hold: records, values, dead letters
  Millis timeout{5000};                             // of one handler call
  Millis revoke_drain{10'000};
  Millis stall_after{300'000};  // the oldest record does not move for so long: a stall
};

struct HttpHandlerOptions {
  std::string url;
  std::string method = "POST";
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<ErrorClass> success{"2xx"};
  std::vector<ErrorClass> retry_on{"408", "429", "5xx"};  // and no answer: timeout, connection
  double rate_limit = 0;                                  // calls a second, of this worker; 0: any
  std::string tls_ca;                                     // empty: the system's
};
enum class ExecValue : std::uint8_t { kJson, kText };
struct ExecHandlerOptions {
  std::vector<std::string> command;
  ExecValue value = ExecValue::kJson;  // the form in which a record's value is given
  int processes = 4;
};
struct JqHandlerOptions {
  std::string program;
};
// A part of the value in its place.
struct TakeHandlerOptions {
  Selector part;  // json:
};
// A handler in C++, for programs that link the library: each thread of the pool makes its own.
struct CustomHandlerOptions {
  std::function<std::unique_ptr<Handler>()> make;
  int threads = 4;
};
struct HandlerOptions {
  std::variant<std::monostate, HttpHandlerOptions, ExecHandlerOptions, JqHandlerOptions,
               TakeHandlerOptions, CustomHandlerOptions>
      kind;
  bool idempotent = false;  // the receiver honours the Idempotency-Key (the user's word)

  [[nodiscard]] bool any() const { return kind.index() != 0; }
  [[nodiscard]] double calls_per_second() const {
    const auto* http = std::get_if<HttpHandlerOptions>(&kind);
    return http == nullptr ? 0 : http->rate_limit;
  }
  // It may have effects of its own: ids are looked up in the ledger before it runs, and calls of
  // one order chain never overlap.
  [[nodiscard]] bool outside() const {
    return any() && !std::holds_alternative<JqHandlerOptions>(kind) &&
           !std::holds_alternative<TakeHandlerOptions>(kind);
  }
};

// How a handler's failure is tried again: after a wait drawn from [0, b] (jitter: full) or of b,
// b = min(max, initial * multiplier^(attempt - 1)); a longer Retry-After counts instead. Until both
// `attempts` and `give_up_after` are reached, while other records succeed.
struct RetryOptions {
  int attempts = 5;               // calls in all; 1: never tried again
  Millis give_up_after{900'000};  // since the first failure, without the time of outages
  Millis initial{100};
  Millis max{10'000};
  double multiplier = 2;
  Jitter jitter = Jitter::kFull;
  std::vector<ErrorClass> never;  // not tried again; a class named exactly in retry_on beats "4xx"
};

struct DeadLetterOptions {
  std::string topic;
  // Records in a row that may be called bad while none takes effect; 0: without a limit.
  std::size_t max_consecutive = kMostInARow;
};

// How the text or number that a selector finds is read: `convert` of an output with a table.
enum class Conversion : std::uint8_t {
  kNone,
  kDays,  // to kNanos: a number that counts since the Unix epoch, or since midnight
  kSeconds,
  kMillis,
  kMicros,
  kNanos,
  kBase64,  // a text that stands for bytes
  kHex,
  kBool,   // 0 or 1
  kInt32,  // so many bits as bytes, the highest first
  kInt64,
  kDecimal,  // base64 of the unscaled number's bytes; or an object of scale and value
  kJson,     // a text that holds a document
};
inline constexpr std::array<std::string_view, 13> kConversionWords{
    "", "d", "s", "ms", "us", "ns", "base64", "hex", "bool", "int32", "int64", "decimal", "json"};
constexpr int kMostScale = 4096;  // of kDecimal, with either sign
constexpr std::string_view kScaledDecimal = "decimal:";
constexpr bool IsTime(Conversion conversion) {
  return conversion >= Conversion::kDays && conversion <= Conversion::kNanos;
}
constexpr std::string_view WordOf(Conversion conversion) {
  return kConversionWords[static_cast<std::size_t>(conversion)];
}
struct ConversionOf {
  Conversion conversion = Conversion::kNone;
  int scale = -1;  // of kDecimal; -1: each value has its own
  bool operator==(const ConversionOf&) const = default;
};
// One of the words, decimal also with its scale ("decimal:2", 0 to kMostScale). nullopt: it is none
// of them.
inline std::optional<ConversionOf> ParseConversion(std::string_view text) {
  for (std::size_t i = 1; i < kConversionWords.size(); ++i) {
    if (kConversionWords[i] == text) return ConversionOf{.conversion = static_cast<Conversion>(i)};
  }
  if (!text.starts_with(kScaledDecimal)) return std::nullopt;
  text.remove_prefix(kScaledDecimal.size());
  if (text.starts_with(' ')) text.remove_prefix(1);
  int scale = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (scale < 0 || scale > kMostScale) return std::nullopt;
  return ConversionOf{.conversion = Conversion::kDecimal, .scale = scale};
}

struct Column {
  std::string name;
  Selector selector;
  Conversion conversion = Conversion::kNone;  // outputs with tables alone
  int scale = -1;                             // ConversionOf
};

// What a row of effects does to one that is in the table.
struct RowRules {
  OnConflict on_conflict = OnConflict::kError;
  std::vector<std::string> key;  // columns that name a row; for update and delete
  // update: only a higher value of fence_by overwrites what fence_column holds.
  std::string fence_column;
  std::optional<Selector> fence_by;
  OnNull on_null_value = OnNull::kBad;  // a tombstone: the value (after the handler) is null
  // A cell that is one of these texts leaves its column out, as ?default does where there is none.
  std::vector<std::string> keep;
};

struct PostgresOptions {
  // The connection: a dsn, and each of these where it does not say it.
  std::string dsn;
  std::string host;  // or the path of a Unix socket's folder
  int port = 0;      // 0: libpq's own
  std::string user, password, database, sslmode;
  std::string table;  // may be schema-qualified
  std::vector<Column> columns;
  RowRules rules;
  // Instead of table, columns and rules: one statement a row with $1… = args, in the same
  // transaction.
  std::string statement;
  std::vector<Selector> args;
  int max_records = 500;  // of one transaction
};

// MySQL 8 or MariaDB.
struct MysqlOptions {
  std::string host;  // or the path of a Unix socket
  int port = 3306;
  std::string user, password, database;
  bool tls = false;  // the server's certificate is checked; without a CA by the system's
  std::string tls_ca, tls_certificate, tls_key;  // paths
  std::string table;                             // NAME or DATABASE.NAME
  std::vector<Column> columns;
  RowRules rules;
  int max_records = 500;  // of one transaction
};

struct SqliteOptions {
  std::string path;
  std::string table;
  std::vector<Column> columns;
  RowRules rules;
  int max_records = 500;  // of one transaction
};

// How a key or a value is written to Kafka, by the schema of a subject.
struct EncodePart {
  RecordFormat format = RecordFormat::kJson;  // kAvro, kProtobuf, kJsonSchema; else as it is
  std::string subject;
  int version = 0;               // 0: the newest when the worker starts
  std::string message;           // Protobuf: its full name; empty: the schema's first
  std::string schema;            // its text; empty: the subject's `version`
  bool register_schema = false;  // of `schema`, where the subject does not have it
  [[nodiscard]] bool Needed() const { return DecodeOptions::IsWireFormat(format); }
};

struct EncodeOptions {
  EncodePart key, value;
  RegistryOptions registry;
};

// The headers of what is written: the record's own, then those that are set. Not passed on are
// those of dead letters and replays, of a name that is set, and those that are dropped.
struct HeaderRules {
  static constexpr std::string_view kDrop = "drop", kAll = "*";  // as a file says it
  std::vector<Column> set;
  std::vector<std::string> dropped;  // kAll: every one
};

// Records into a topic of the same cluster, in transactions with the offsets.
struct KafkaOutputOptions {
  std::string topic;
  Selector key{.kind = Selector::Kind::kKey, .argument = "", .optional = true};
  Selector value{.kind = Selector::Kind::kValue, .argument = "", .optional = true};
  HeaderRules headers;
  Millis transaction_timeout{10'000};
  Millis linger{100};  // a transaction is closed when its oldest record is this old, or when full
  int max_records = 10'000;
  EncodeOptions encode;
};

// JSON lines. Without columns a line is the record with its position, key, headers and value.
struct FileOptions {
  std::string path;
  std::vector<Column> columns;
};
struct StdoutOptions {
  std::vector<Column> columns;
};

using OutputOptions = std::variant<std::monostate, PostgresOptions, MysqlOptions, SqliteOptions,
                                   KafkaOutputOptions, FileOptions, StdoutOptions>;

// What makes an effect final, and lets the offset move.
enum class Finality : std::uint8_t {
  kLedger,       // the transaction with the ledger row
  kWrite,        // the write; a DONE mark is sent after it, and not awaited: at least once
  kTransaction,  // the Kafka transaction that holds outputs and offsets
};
inline Finality FinalityOf(const OutputOptions& output) {
  if (std::holds_alternative<KafkaOutputOptions>(output)) return Finality::kTransaction;
  if (std::holds_alternative<FileOptions>(output) || std::holds_alternative<StdoutOptions>(output))
    return Finality::kWrite;
  return Finality::kLedger;
}

// With a ledger the write itself finds out whether another has done the record; so does a Kafka
// transaction that holds the position which is the record's identity.
inline bool WriteDecides(Finality finality, const IdentityRule& identity) {
  return finality == Finality::kLedger || (finality == Finality::kTransaction &&
                                           identity.ByPosition() && !identity.accept_replay_ids);
}

// Who may change the log's level and pause pipelines over HTTP.
enum class ControlAccess : std::uint8_t { kOff, kLoopback, kToken };

struct ObserveOptions {
  std::string http;  // HOST:PORT; empty: no server
  ControlAccess control = ControlAccess::kOff;
  std::string control_token;
  std::string log_level = "info";
  std::string log_format = "json";  // json | text
};

struct PipelineOptions {
  std::string name;
  Guarantee guarantee = Guarantee::kExactlyOnce;
  KafkaOptions kafka;
  IdentityRule identity;
  OnBad on_id_conflict = OnBad::kStop;
  OnBad on_bad_record = OnBad::kStop;
  LockSection lock;
  ProcessingOptions processing;
  HandlerOptions handler;
  RetryOptions retry;
  std::optional<DeadLetterOptions> dead_letter;
  OutputOptions output;
  std::optional<std::chrono::seconds> ledger_keep;  // nullopt: for ever
  ObserveOptions observe;
  Millis shutdown_timeout{25'000};
  std::string config_hash;  // hex, of the file's text
  // The file's settings as people may see them: (path, text), without secrets.
  std::vector<std::pair<std::string, std::string>> shown;

  // Where bad records stop the pipeline, the output has to be as sure of one.
  [[nodiscard]] std::size_t max_consecutive() const {
    return dead_letter ? dead_letter->max_consecutive : kMostInARow;
  }
};

// Whether the output writes fencing tokens, which come in order by the lock alone.
inline bool WritesTokens(const OutputOptions& output) {
  const auto is_token = [](const Selector& s) { return s.kind == Selector::Kind::kToken; };
  const auto writes = [&](const auto& o) {
    bool any = false;
    if constexpr (requires { o.columns; }) {
      any = std::ranges::any_of(o.columns, is_token, &Column::selector);
    }
    if constexpr (requires { o.rules; }) any |= o.rules.fence_by && is_token(*o.rules.fence_by);
    if constexpr (requires { o.args; }) any |= std::ranges::any_of(o.args, is_token);
    return any;
  };
  return std::visit(writes, output);
}

// The ledger alone decides what takes effect, and the lock only spares double work: a lock node may
// forget, evict or fail over.
inline bool LedgerDecides(const PipelineOptions& options) {
  return options.output.index() != 0 && FinalityOf(options.output) == Finality::kLedger &&
         !WritesTokens(options.output) &&
         (!options.handler.outside() || options.handler.idempotent);
}

// So many neighbouring offsets of a partition share a lock: lock.block, where the record's identity
// is its position and the write decides. 1: each record has its own.
inline std::int64_t LockBlock(const PipelineOptions& options) {
  const bool shared =
      options.identity.ByPosition() && WriteDecides(FinalityOf(options.output), options.identity);
  return shared ? options.lock.block : 1;
}

// What a worker that runs can take up.
struct Tuning {
  int concurrency = 64;  // handler calls at a time
  double calls_per_second = 0;
  RetryOptions retry;
};
inline Tuning TuningOf(const PipelineOptions& options) {
  return {options.processing.concurrency, options.handler.calls_per_second(), options.retry};
}

}  // namespace fencepost::consumer
