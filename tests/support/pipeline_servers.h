// What a whole pipeline needs around it: a broker, a PostgreSQL, five lock nodes, a stream of
// orders, and SQL of the tests' own to look at what became of them.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/kafka_broker.h"
#include "tests/support/postgres_server.h"
#include "tests/support/redis_server.h"

namespace fencepost::testing {

// A stream of orders {"order_id":…,"amount":…}, deterministic by seed. About `repeats` of the
// records are an earlier order once more with the same bytes, half of those on another partition.
// Keys are customer-0 … customer-(customers - 1), by turns.
class Orders {
 public:
  Orders(std::string bootstrap, std::string topic, int partitions, std::uint64_t seed = 1,
         double repeats = 0, int customers = 997);

  void Produce(int records);  // returns when all are acknowledged
  [[nodiscard]] int produced() const { return produced_; }
  [[nodiscard]] int unique() const { return next_; }
  [[nodiscard]] static std::string Id(int order);
  [[nodiscard]] static int Amount(int order);
  [[nodiscard]] static std::string Value(int order);

 private:
  struct Sent {
    int order;
    int partition;
  };
  void Send(TestProducer& producer, Sent sent);

  std::string bootstrap_;
  std::string topic_;
  int partitions_;
  double repeats_;
  int customers_;
  std::mt19937_64 random_;
  std::vector<Sent> recent_;
  int produced_ = 0;
  int next_ = 0;
};

// The table `effects` in a database of its own. It has no unique key, so that a double shows.
class EffectsTable {
 public:
  enum Origin { kMade, kIsThere };
  EffectsTable(SqlServer& server, std::string database, Origin origin = kMade);

  // PostgreSQL's, else empty.
  [[nodiscard]] std::string dsn() const;
  // MySQL's, else empty: the keys of output.mysql that say where it is.
  [[nodiscard]] std::string mysql() const;
  // SQLite's, else empty.
  [[nodiscard]] std::string sqlite_path() const;
  SqlServer::Rows Exec(const std::string& sql) const { return server_.Exec(sql, database_); }
  [[nodiscard]] std::unique_ptr<SqlSession> Open(const std::string& user = "") const {
    return server_.Open(database_, user);
  }
  [[nodiscard]] SqlServer::Kind kind() const { return server_.kind(); }
  [[nodiscard]] std::string Value(const std::string& sql) const {
    return server_.Value(sql, database_);
  }
  // Rows now; -1 while the server does not answer.
  [[nodiscard]] int Count() const;
  // Compares table and ledger with the orders 0 … unique-1, by SQL of its own. "" when each has
  // exactly one row with its amount, and the ledger exactly their ids; else what is wrong.
  [[nodiscard]] std::string Audit(const std::string& pipeline, int unique) const;

 private:
  SqlServer& server_;
  std::string database_;
};

// While it lives no worker can write an effect: they gather leases and wait.
class TableLock {
 public:
  explicit TableLock(const EffectsTable& table, const std::string& name = "effects");

 private:
  std::unique_ptr<SqlSession> session_;
};

// The text of a pipeline file over these parts. Fields that are empty are left out.
struct PipelineText {
  std::string name;
  std::string brokers;
  std::string topic;
  std::string start_from = "earliest";
  std::string nodes;          // A,B,C
  std::string login{};        // further keys of lock.redis, each with a comma before it
  std::string dsn{};          // PostgreSQL, or
  std::string mysql{};        // MySQL: EffectsTable::mysql, or
  std::string sqlite_path{};  // SQLite
  // Short enough for tests that wait for the end of a lease, a session or a quarantine. What a
  // dead worker held stays on the nodes for ttl + 2 * max_skew: longer than its session, so that a
  // takeover is seen.
  std::string ttl = "3s";
  std::string block{};  // empty: the default
  std::string min_validity = "1s";
  std::string max_skew = "2s";
  int session_ms = 4000;
  int heartbeat_ms = 500;
  std::string record_id = "json:/order_id";
  std::string order{};
  std::string librdkafka{};  // further settings, each with a comma before it
  std::string more{};        // further top-level lines
  std::string guarantee = "exactly-once";
  bool tokens = true;    // are written: so the lock counts (consumer::LedgerDecides)
  std::string output{};  // the whole section, instead of the table `effects`

  [[nodiscard]] std::string Yaml() const;
};

// Creates the store at once with a max_ttl of 3 s; with a max_skew of 2 s a quarantine is 7 s.
// Throws when that fails.
void InitLocks(const RedisServers& nodes, const std::string& max_ttl = "3s");

// All of the group's committed offsets are the ends of the topic's partitions; false while the
// broker does not answer.
bool CommittedToTheEnd(KafkaBroker& kafka, const std::string& group, const std::string& topic);

}  // namespace fencepost::testing
