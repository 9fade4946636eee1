// Everything a pipeline file can say, as plain values; config/ fills them, consumer/ works by them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "consumer/pipeline/handler_options.h"
#include "consumer/pipeline/server_options.h"
#include "consumer/record/dead_letter.h"
#include "consumer/record/identity.h"
#include "consumer/record/selector.h"
#include "locking/core/options.h"
#include "locking/redis/options.h"

namespace fencepost::consumer {

enum class Guarantee : std::uint8_t { kExactlyOnce, kAtLeastOnce };
enum class StartFrom : std::uint8_t { kEarliest, kLatest };
enum class Order : std::uint8_t { kPartition, kKey, kNone };
enum class OnBad : std::uint8_t { kStop, kDeadLetter, kSkip };  // skip: on_id_conflict only
enum class OnConflict : std::uint8_t { kError, kIgnore, kUpdate };
enum class OnNull : std::uint8_t { kBad, kSkip, kDelete };

struct KafkaOptions : ClusterOptions {
  std::vector<std::string> topics;
  std::string group;  // default: the pipeline's name
  StartFrom start_from = StartFrom::kEarliest;
  Millis commit_interval{1000};
  bool static_members = false;  // group.instance.id is the worker's name (KIP-345)
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

struct DeadLetterOptions {
  std::string topic;
  // Records in a row that may be called bad while none takes effect; 0: without a limit.
  std::size_t max_consecutive = kMostInARow;
  ClusterOptions cluster{};  // that has the topic; no brokers: kafka's
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
  std::map<std::string, std::string> types;  // of columns, in SQL, where they are created
  bool operator==(const RowRules&) const = default;
};

// Which records a pipeline is about: all that the conditions hold for. The others are finished
// without lock, handler or output.
struct FilterOptions {
  struct Condition {
    Selector selector;
    std::optional<std::string> text;  // nullopt: it exists
    bool operator==(const Condition&) const = default;
  };
  std::vector<Condition> all;
  std::string program;  // instead: jq, whose first result is true
  [[nodiscard]] bool any() const { return !all.empty() || !program.empty(); }
  bool operator==(const FilterOptions&) const = default;
};

// Chooses a name by a part of the record.
struct Route {
  enum class Otherwise : std::uint8_t { kBad, kSkip, kName };
  Selector by;
  std::vector<std::pair<std::string, std::string>> of;  // what `by` finds, and the name
  Otherwise otherwise = Otherwise::kBad;
  std::string name;  // kName: of all other records
  bool operator==(const Route&) const = default;
};

// Rows of a record in one table, or calls of a statement.
struct Effect {
  std::string table;           // may be schema-qualified
  std::optional<Route> route;  // instead: the record chooses the table
  std::vector<Column> columns;
  RowRules rules;
  // Instead of table, columns and rules: one statement a row with $1… = args, in the same
  // transaction.
  std::string statement;
  std::vector<Selector> args;
  std::optional<Selector> each;  // a row an element of this array; nullopt: one row a value
  FilterOptions when;            // of the value
  bool operator==(const Effect&) const = default;
};

struct PostgresOptions {
  // The connection: a dsn, and each of these where it does not say it.
  std::string dsn;
  std::string host;  // or the path of a Unix socket's folder
  int port = 0;      // 0: libpq's own
  std::string user, database, sslmode;
  Secret password;
  // One effect, or `effects`: EffectsOf.
  std::string table;
  std::vector<Column> columns;
  RowRules rules;
  std::string statement;
  std::vector<Selector> args;
  std::vector<Effect> effects;
  int max_records = 500;  // of one transaction
  bool create = false;    // what is missing in the database, at the start
};

// MySQL 8 or MariaDB.
struct MysqlOptions {
  std::string host;  // or the path of a Unix socket
  int port = 3306;
  std::string user, database;
  Secret password;
  bool tls = false;  // the server's certificate is checked; without a CA by the system's
  std::string tls_ca, tls_certificate, tls_key;  // paths
  std::string table;                             // NAME or DATABASE.NAME
  std::vector<Column> columns;
  RowRules rules;
  std::vector<Effect> effects;
  int max_records = 500;  // of one transaction
  bool create = false;
};

struct SqliteOptions {
  std::string path;
  std::string table;
  std::vector<Column> columns;
  RowRules rules;
  std::vector<Effect> effects;
  int max_records = 500;  // of one transaction
  bool create = false;
};

// What becomes of a record in a database, in this order.
template <typename Output>
std::vector<Effect> EffectsOf(const Output& output) {
  if (!output.effects.empty()) return output.effects;
  Effect one{.table = output.table, .columns = output.columns, .rules = output.rules};
  if constexpr (requires { output.statement; }) {
    one.statement = output.statement;
    one.args = output.args;
  }
  return {std::move(one)};
}

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

// A record that output.kafka makes of a value.
struct KafkaRecord {
  std::string topic;
  std::optional<Route> route;  // instead: the record chooses the topic
  Selector key{.kind = Selector::Kind::kKey, .argument = "", .optional = true};
  Selector value{.kind = Selector::Kind::kValue, .argument = "", .optional = true};
  std::string program;  // jq, instead of value: a record for each of its results
  FilterOptions when;   // of the value
  bool operator==(const KafkaRecord&) const = default;
};

// Records into a topic: of the same cluster in transactions with the offsets; of another one in
// transactions of their own, and the offsets follow.
struct KafkaOutputOptions {
  // One record, or `records`: RecordsOf.
  std::string topic;
  Selector key{.kind = Selector::Kind::kKey, .argument = "", .optional = true};
  Selector value{.kind = Selector::Kind::kValue, .argument = "", .optional = true};
  std::vector<KafkaRecord> records;
  HeaderRules headers;  // of all of them
  Millis transaction_timeout{10'000};
  Millis linger{100};  // a transaction is closed when its oldest record is this old, or when full
  int max_records = 10'000;
  EncodeOptions encode;
  ClusterOptions cluster;  // that has the topic; no brokers: kafka's
};

// What becomes of a value in Kafka, in this order.
inline std::vector<KafkaRecord> RecordsOf(const KafkaOutputOptions& output) {
  if (!output.records.empty()) return output.records;
  return {{.topic = output.topic,
           .route = {},
           .key = output.key,
           .value = output.value,
           .program = {},
           .when = {}}};
}

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
  if (const auto* kafka = std::get_if<KafkaOutputOptions>(&output)) {
    return kafka->cluster.brokers.empty() ? Finality::kTransaction : Finality::kWrite;
  }
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

// observe.traces: which traces are kept, and where their spans go.
struct TraceOptions {
  std::string endpoint;        // of OTLP over HTTP, with its path; empty: there are no traces
  double sample = 0.01;        // of the records that begin a trace: 0 to 1
  bool parent_decides = true;  // a record that continues a trace is kept as its header says
  Millis slow{1000};           // a record that others have had in their hands for so long is kept
  std::vector<std::pair<std::string, std::string>> headers;  // of each request
  std::string service = "fencepost";
  std::vector<std::pair<std::string, std::string>> resource;  // further attributes
  Millis timeout{10'000};                                     // of a request
};

// TLS of the HTTP port: paths of PEM files, which are read again when they change.
struct PortTls {
  std::string certificate, key;  // empty: no TLS
  std::string client_ca;  // who signs the certificates of those who ask; empty: they need none
  bool operator==(const PortTls&) const = default;
};

// Who may ask the HTTP port: who says the token, or name and password. None of both: anybody.
struct PortAuth {
  Secret bearer;  // secrets are read at every request
  std::string username;
  Secret password;
  std::vector<std::string> open;  // live, ready: they may be asked by anybody
  bool operator==(const PortAuth&) const = default;
};

struct ObserveOptions {
  std::string http;       // HOST:PORT; empty: no server
  std::string advertise;  // HOST:PORT where others reach it; empty: as the brokers see it
  PortTls tls;
  PortAuth auth;
  ControlAccess control = ControlAccess::kOff;
  Secret control_token;  // read at every request
  std::string log_level = "info";
  std::string log_format = "json";  // json | text
  TraceOptions traces;
};

struct PipelineOptions {
  std::string name;
  Guarantee guarantee = Guarantee::kExactlyOnce;
  KafkaOptions kafka;
  FilterOptions filter;  // `when`
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

// What the clients of a cluster work by. Another one's do not get what kafka.librdkafka says of TLS
// and login: that is kafka's own.
inline KafkaOptions ReachedAt(const ClusterOptions& cluster, KafkaOptions kafka) {
  if (cluster.brokers.empty()) return kafka;
  static_cast<ClusterOptions&>(kafka) = cluster;
  std::erase_if(kafka.librdkafka, [](const auto& setting) {
    constexpr std::string_view kOwn[] = {"security.", "ssl.", "enable.ssl.", "sasl."};
    return std::ranges::any_of(
        kOwn, [&](std::string_view prefix) { return setting.first.starts_with(prefix); });
  });
  return kafka;
}

// Of output.kafka's topic, and of the dead letters'.
inline KafkaOptions OutputCluster(const PipelineOptions& options) {
  const auto* kafka = std::get_if<KafkaOutputOptions>(&options.output);
  return ReachedAt(kafka == nullptr ? ClusterOptions() : kafka->cluster, options.kafka);
}
inline KafkaOptions LetterCluster(const PipelineOptions& options) {
  return ReachedAt(options.dead_letter ? options.dead_letter->cluster : ClusterOptions(),
                   options.kafka);
}
// All three, and the sections of the file that they are of.
inline std::array<std::pair<std::string_view, KafkaOptions>, 3> ClustersOf(
    const PipelineOptions& options) {
  return {{{"kafka", options.kafka},
           {"output.kafka", OutputCluster(options)},
           {"dead_letter", LetterCluster(options)}}};
}

// Dead letters go into the Kafka transaction that holds the offsets; else each is published, and
// acknowledged before the offset passes it.
inline bool LettersInTransaction(const PipelineOptions& options) {
  return options.dead_letter && options.dead_letter->cluster.brokers.empty() &&
         FinalityOf(options.output) == Finality::kTransaction;
}

// Whether the output writes fencing tokens, which come in order by the lock alone.
inline bool WritesTokens(const OutputOptions& output) {
  const auto is_token = [](const Selector& s) { return s.kind == Selector::Kind::kToken; };
  const auto effect = [&](const Effect& e) {
    return std::ranges::any_of(e.columns, is_token, &Column::selector) ||
           (e.rules.fence_by && is_token(*e.rules.fence_by)) ||
           std::ranges::any_of(e.args, is_token);
  };
  const auto record = [&](const KafkaRecord& r) { return is_token(r.key) || is_token(r.value); };
  const auto writes = [&](const auto& o) {
    if constexpr (requires { o.effects; }) {
      return std::ranges::any_of(EffectsOf(o), effect);
    } else if constexpr (requires { o.records; }) {
      return std::ranges::any_of(RecordsOf(o), record) ||
             std::ranges::any_of(o.headers.set, is_token, &Column::selector);
    } else if constexpr (requires { o.columns; }) {
      return std::ranges::any_of(o.columns, is_token, &Column::selector);
    } else {
      return false;
    }
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
