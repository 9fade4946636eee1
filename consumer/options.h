// Everything a pipeline file can say, as plain values; config/ fills them, consumer/ works by them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "consumer/flow/selector.h"
#include "locking/core/options.h"
#include "locking/redis/options.h"

namespace fencepost::consumer {

using Millis = std::chrono::milliseconds;

enum class Guarantee : std::uint8_t { kExactlyOnce, kAtLeastOnce };
enum class StartFrom : std::uint8_t { kEarliest, kLatest };
enum class Order : std::uint8_t { kPartition, kKey, kNone };
enum class OnBad : std::uint8_t { kStop, kDeadLetter, kSkip };  // skip: on_id_conflict only

struct KafkaOptions {
  std::vector<std::string> brokers;
  std::vector<std::string> topics;
  std::string group;  // default: the pipeline's name
  StartFrom start_from = StartFrom::kEarliest;
  Millis commit_interval{1000};
  std::string tls_ca, tls_certificate, tls_key;  // paths; empty: not used
  std::string sasl_mechanism, sasl_username, sasl_password;
  std::map<std::string, std::string> librdkafka;  // passed through
};

struct LockSection {
  locking::LockOptions lock;    // ttl, min_validity, max_skew, node_timeout, remember_done
  locking::RedisOptions redis;  // nodes and how to reach them
  Millis wait{30'000};          // then the record is parked and tried again
};

struct ProcessingOptions {
  Order order = Order::kKey;
  int concurrency = 64;
  int max_in_flight = 4096;  // records from the watermark on, finished ones included
  std::uint64_t max_in_flight_bytes = 64ull << 20;
  Millis timeout{5000};
  Millis revoke_drain{10'000};
};

struct Column {
  std::string name;
  Selector selector;
};

struct PostgresOptions {
  std::string dsn;
  std::string table;  // may be schema-qualified
  std::vector<Column> columns;
};

struct SqliteOptions {
  std::string path;
  std::string table;
  std::vector<Column> columns;
};

using OutputOptions = std::variant<std::monostate, PostgresOptions, SqliteOptions>;

struct ObserveOptions {
  std::string http;  // HOST:PORT; empty: no server
  std::string log_level = "info";
  std::string log_format = "json";  // json | text
};

struct PipelineOptions {
  std::string name;
  Guarantee guarantee = Guarantee::kExactlyOnce;
  KafkaOptions kafka;
  Selector record_id;  // Selector::Kind::kPosition by default
  OnBad on_id_conflict = OnBad::kStop;
  OnBad on_bad_record = OnBad::kStop;
  LockSection lock;
  ProcessingOptions processing;
  OutputOptions output;
  std::optional<std::chrono::seconds> ledger_keep;  // nullopt: for ever
  ObserveOptions observe;
  Millis shutdown_timeout{25'000};
  std::string config_hash;  // hex, of the file's text
};

}  // namespace fencepost::consumer
