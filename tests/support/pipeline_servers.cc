#include "tests/support/pipeline_servers.h"

#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/support/sqlite_file.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {

Orders::Orders(std::string bootstrap, std::string topic, int partitions, std::uint64_t seed,
               double repeats, int customers)
    : bootstrap_(std::move(bootstrap)),
      topic_(std::move(topic)),
      partitions_(partitions),
      repeats_(repeats),
      customers_(customers),
      random_(seed) {}

std::string Orders::Id(int order) { return fmt::format("o-{}", order); }
int Orders::Amount(int order) { return order * 7 % 1000; }

std::string Orders::Value(int order) {
  return fmt::format(R"({{"order_id":"{}","amount":{}}})", Id(order), Amount(order));
}

void Orders::Produce(int records) {
  constexpr std::size_t kRemembered = 2000;
  TestProducer producer(bootstrap_, "", {{"linger.ms", "5"}});
  for (int i = 0; i < records; ++i) {
    const double dice = static_cast<double>(random_() % 1'000'000) / 1e6;
    if (dice < repeats_ && !recent_.empty()) {
      Sent again = recent_[random_() % recent_.size()];
      if (random_() % 2 == 0) again.partition = (again.partition + 1) % partitions_;
      Send(producer, again);
      continue;
    }
    const Sent fresh{next_++, static_cast<int>(random_() % static_cast<unsigned>(partitions_))};
    if (recent_.size() < kRemembered) {
      recent_.push_back(fresh);
    } else {
      recent_[static_cast<std::size_t>(fresh.order) % kRemembered] = fresh;
    }
    Send(producer, fresh);
  }
  producer.Flush();
}

void Orders::Send(TestProducer& producer, Sent sent) {
  TestRecord record;
  record.topic = topic_;
  record.partition = sent.partition;
  record.key = fmt::format("customer-{}", sent.order % customers_);
  record.value = Value(sent.order);
  record.headers = {{"source", "shop"}};
  producer.Send(record);
  ++produced_;
}

EffectsTable::EffectsTable(SqlServer& server, std::string database, Origin origin)
    : server_(server), database_(std::move(database)) {
  if (origin == kIsThere) return;
  if (kind() != SqlServer::Kind::kSqlite) {
    const char quote = server_.IsPostgres() ? '"' : '`';
    server_.Exec(fmt::format("CREATE DATABASE {}{}{}", quote, database_, quote),
                 server_.IsPostgres() ? "postgres" : "mysql");
  }
  Exec(
      "CREATE TABLE effects (order_id text NOT NULL, amount int NOT NULL CHECK (amount >= 0),"
      " fence bigint)");
}

std::string EffectsTable::dsn() const {
  const auto* postgres = dynamic_cast<const PostgresServer*>(&server_);
  return postgres == nullptr ? "" : postgres->dsn(database_);
}

std::string EffectsTable::mysql() const {
  if (kind() != SqlServer::Kind::kMysql) return "";
  return fmt::format("    host: 127.0.0.1\n    port: {}\n    user: app\n    database: {}\n",
                     server_.port(), database_);
}

std::string EffectsTable::sqlite_path() const {
  const auto* files = dynamic_cast<const SqliteFiles*>(&server_);
  return files == nullptr ? "" : files->path(database_);
}

int EffectsTable::Count() const {
  try {
    return std::stoi(Value("SELECT count(*) FROM effects"));
  } catch (const std::runtime_error&) {
    return -1;
  }
}

std::string EffectsTable::Audit(const std::string& pipeline, int unique) const {
  const bool sqlite = kind() == SqlServer::Kind::kSqlite;
  const std::string wanted = fmt::format(
      "WITH wanted AS (SELECT {} AS order_id, n * 7 % 1000 AS amount FROM {}) ",
      sqlite ? "'o-' || n" : "concat('o-', n)",
      server_.IsPostgres() ? fmt::format("generate_series(0, {}) n", unique - 1)
      : sqlite ? fmt::format("(WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r"
                             " WHERE n < {}) SELECT n FROM r) numbers",
                             unique - 1)
               : fmt::format("(SELECT seq AS n FROM seq_0_to_{}) numbers", unique - 1));
  const struct {
    const char* what;
    std::string sql;
  } questions[] = {
      {"orders that are lost",
       wanted + "SELECT order_id FROM wanted EXCEPT SELECT order_id FROM effects"},
      {"orders with more than one effect",
       "SELECT order_id FROM effects GROUP BY order_id HAVING count(*) > 1"},
      {"effects that nobody ordered",
       wanted + "SELECT order_id, amount FROM effects EXCEPT SELECT order_id, amount FROM wanted"},
      {"orders that are not in the ledger",
       wanted +
           "SELECT order_id FROM wanted EXCEPT SELECT record_id FROM fencepost_ledger"
           " WHERE pipeline = '" +
           pipeline + "'"},
      {"ledger rows of no order", wanted +
                                      "SELECT record_id FROM fencepost_ledger WHERE pipeline = '" +
                                      pipeline + "' EXCEPT SELECT order_id FROM wanted"},
      {"effects whose token is not the ledger's",
       "SELECT order_id FROM effects JOIN fencepost_ledger ON record_id = order_id"
       " AND pipeline = '" +
           pipeline + "' WHERE fence <> token"},
  };
  std::string trouble;
  for (const auto& question : questions) {
    const auto rows = Exec(question.sql);
    if (rows.empty()) continue;
    trouble += fmt::format("{}: {}, the first is {}\n", question.what, rows.size(),
                           rows[0][0].value_or("NULL"));
  }
  return trouble;
}

TableLock::TableLock(const EffectsTable& table, const std::string& name) : session_(table.Open()) {
  const std::array locks = {fmt::format("BEGIN; LOCK TABLE {} IN EXCLUSIVE MODE", name),
                            fmt::format("LOCK TABLES {} WRITE", name),
                            std::string("BEGIN IMMEDIATE")};
  session_->Exec(locks.at(static_cast<std::size_t>(table.kind())));
}

std::string PipelineText::Yaml() const {
  std::string text = fmt::format(
      "version: 1\nname: {}\nguarantee: {}\n"
      "kafka:\n  brokers: [{}]\n  topics: [{}]\n  start_from: {}\n"
      "  librdkafka: {{session.timeout.ms: {}, heartbeat.interval.ms: {}{}}}\n"
      "record_id: {}\n"
      "lock:\n  redis: {{nodes: [{}]{}}}\n  ttl: {}\n  min_validity: {}\n  max_skew: {}\n",
      name, guarantee, brokers, topic, start_from, session_ms, heartbeat_ms, librdkafka, record_id,
      nodes, login, ttl, min_validity, max_skew);
  if (!block.empty()) text += fmt::format("  block: {}\n", block);
  if (!order.empty()) text += fmt::format("processing: {{order: {}}}\n", order);
  text += more;
  if (!output.empty()) return text + output;
  text += !mysql.empty() ? "output:\n  mysql:\n" + mysql
          : dsn.empty()  ? fmt::format("output:\n  sqlite:\n    path: {}\n", sqlite_path)
                         : fmt::format("output:\n  postgres:\n    dsn: {}\n", dsn);
  return text + fmt::format(
                    "    table: effects\n"
                    "    columns: {{order_id: json:/order_id, amount: json:/amount{}}}\n",
                    tokens ? ", fence: token" : "");
}

void InitLocks(const RedisServers& nodes, const std::string& max_ttl) {
  const Finished done =
      RunFencepost({"locks", "init", "--redis", nodes.list(), "--max-ttl", max_ttl});
  if (done.exit_code == 0) return;
  throw std::runtime_error("locks init: " + done.output + done.error_output);
}

bool CommittedToTheEnd(KafkaBroker& kafka, const std::string& group, const std::string& topic) {
  try {
    const auto ends = kafka.admin().EndOffsets(topic);  // none: the broker does not answer
    return !ends.empty() && kafka.admin().CommittedOffsets(group, topic) == ends;
  } catch (const std::runtime_error&) {
    return false;  // the broker is not back yet
  }
}

}  // namespace fencepost::testing
