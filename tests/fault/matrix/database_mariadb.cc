#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/fault/matrix/database.h"
#include "tests/support/mysql_server.h"

namespace fencepost::matrix {

using testing::Effect;
using testing::MysqlServer;
using testing::Place;
using testing::TcpProxy;

namespace {

constexpr std::chrono::seconds kLimit{30};

// A query, the first packet of its exchange.
constexpr std::string_view kCommit{
    "\x07\0\0\0"
    "\x03"
    "COMMIT",
    11};

// Of each log: where a transaction begins, and the first column of each row that it inserts into
// the table.
constexpr const char* kInserts =
    "for log in \"$@\"; do mariadb-binlog --no-defaults --base64-output=DECODE-ROWS --verbose"
    " \"$log\"; done | sed -n -e '/^START TRANSACTION/p'"
    " -e '/^### INSERT INTO `{}`.`effects`$/,/^###   @1=/s/^###   @1=//p'";

testing::MysqlServerOptions Options(int id) {
  return {.arguments = {fmt::format("--max-connections={}", kConnections),
                        fmt::format("--server-id={}", id), "--log-bin=binlog", "--sync-binlog=1",
                        "--log-slave-updates", "--binlog-format=ROW"}};
}

class Mariadb : public Database {
 public:
  Mariadb() : Database(std::make_unique<MysqlServer>(Options(1))) {}

  [[nodiscard]] std::string Output(const std::string& database) const override {
    return fmt::format(
        "  mysql:\n    host: 127.0.0.1\n    port: {}\n    user: {}\n    database: {}\n",
        proxy().port(), worker(), database);
  }
  [[nodiscard]] const char* worker() const override { return "worker"; }

  // The number of a row is given to it with the insert, not with the commit.
  void MakeEffects(const testing::EffectsTable& table, const testing::SmallDisk* disk) override {
    std::string wide;
    std::string place;
    if (disk != nullptr) {
      wide = fmt::format(", wide varchar({0}) CHARACTER SET ascii DEFAULT repeat('x', {0})", kWide);
      place = fmt::format(" DATA DIRECTORY='{}'", disk->FolderOf("mysql"));
    }
    table.Exec(fmt::format(
        "DROP TABLE effects; CREATE TABLE effects (id bigint PRIMARY KEY AUTO_INCREMENT,"
        " order_id varchar(20) NOT NULL, amount int NOT NULL, source_partition int,"
        " source_offset bigint, fence bigint{1}){2}; CREATE USER IF NOT EXISTS {0};"
        " GRANT INSERT, SELECT ON effects TO {0};"
        " CREATE TABLE second_effects (order_id varchar(20) NOT NULL, amount int NOT NULL);"
        " GRANT INSERT, SELECT ON second_effects TO {0};"
        " GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON fencepost_ledger TO {0};"
        " GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON fencepost_positions TO {0}",
        account(), wide, place));
  }

  // The binary log has the transactions in the order of their commits. Rows of one take effect at
  // once: here they stand in the order of their positions.
  [[nodiscard]] std::vector<Effect> ReadEffects(const testing::EffectsTable& table) override {
    const auto transactions = Transactions(table.Value("SELECT database()"));
    std::map<std::pair<int, Place>, std::vector<Effect>> ordered;
    for (const auto& row : table.Exec(fmt::format("SELECT {}, id FROM effects", kEffectColumns))) {
      const auto transaction = transactions.find(row.back().value());
      if (transaction == transactions.end()) {
        throw std::runtime_error("nothing says when an effect was committed");
      }
      const Effect effect = EffectOf(row);
      ordered[{transaction->second, effect.record.place}].push_back(effect);
    }
    std::vector<Effect> effects;
    for (const auto& [where, some] : ordered) {
      effects.insert(effects.end(), some.begin(), some.end());
    }
    return effects;
  }
  void Drop(const std::string& database) override {
    Exec(fmt::format("DROP DATABASE `{}`", database), "mysql");
  }

  [[nodiscard]] Seen Commits(TcpProxy::Way way) const override {
    auto asked = std::make_shared<std::set<int>>();  // connections whose last request it was
    return [way, asked](const TcpProxy::Passing& passing) {
      if (passing.way == TcpProxy::Way::kToClient) {
        return way == TcpProxy::Way::kToClient && asked->contains(passing.connection);
      }
      asked->erase(passing.connection);
      if (passing.bytes != kCommit) return false;
      asked->insert(passing.connection);
      return way == TcpProxy::Way::kToServer;
    };
  }
  void EndSessions() override { Exec(fmt::format("KILL USER {}", account()), "mysql"); }
  [[nodiscard]] std::vector<std::string> WaitFor(const testing::EffectsTable& of,
                                                 const std::string& table) const override {
    const std::string waiting =
        Value(fmt::format("SELECT count(*) FROM information_schema.processlist WHERE user = '{}'"
                          " AND db = '{}' AND state LIKE 'Waiting for table%'"
                          " AND info LIKE 'INSERT INTO %{}%'",
                          worker(), of.Value("SELECT database()"), table),
              "mysql");
    return std::vector<std::string>(std::stoul(waiting));
  }
  [[nodiscard]] int MostConnections() const override {
    return std::stoi(Value("SELECT @@max_connections", "mysql"));
  }
  [[nodiscard]] bool IsFull(std::string_view refusal) const override {
    return refusal.find("Too many connections") != std::string_view::npos;
  }
  [[nodiscard]] std::string_view NoRoom() const override { return "is full"; }

 protected:
  // Semi-synchronous: nobody sees a transaction, nor hears of it, before the replica has it.
  std::unique_ptr<testing::SqlServer> MakeReplica() override {
    auto replica = std::make_unique<MysqlServer>(Options(2));
    first().Exec(
        "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC',"
        " GLOBAL rpl_semi_sync_master_timeout = 600000, GLOBAL rpl_semi_sync_master_enabled = ON",
        "mysql");
    replica->Exec(
        fmt::format("RESET MASTER; SET GLOBAL rpl_semi_sync_slave_enabled = ON; CHANGE MASTER TO"
                    " master_host = '127.0.0.1', master_port = {}, master_user = 'app',"
                    " master_ssl = 0, master_use_gtid = slave_pos; START SLAVE",
                    first().port()));
    const auto follows = [&] {
      const auto rows = first().Exec("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'", "mysql");
      return !rows.empty() && rows.at(0).at(1) == "1";
    };
    testing::RequireWithin(kLimit, "the replica to follow", follows);
    return replica;
  }
  void Promote(testing::SqlServer& replica) override {
    replica.Exec("STOP SLAVE IO_THREAD", "mysql");
    const auto applied = [&] {
      const auto rows = replica.Exec("SHOW SLAVE STATUS", "mysql");
      return !rows.empty() && std::any_of(rows[0].begin(), rows[0].end(), [](const auto& cell) {
        return cell && cell->starts_with("Slave has read all relay log");
      });
    };
    testing::RequireWithin(kLimit, "the replica to have applied all", applied);
    replica.Exec("STOP SLAVE; RESET SLAVE ALL", "mysql");
  }
  void Forget() override { Exec("RESET MASTER", "mysql"); }

 private:
  [[nodiscard]] std::string account() const { return fmt::format("{}@'127.0.0.1'", worker()); }

  // By the number of the row.
  [[nodiscard]] std::map<std::string, int> Transactions(const std::string& database) const {
    const std::string folder = Value("SELECT @@datadir", "mysql");
    testing::ProcessOptions reader;
    reader.argv = {"sh", "-c", fmt::format(kInserts, database), "sh"};
    for (const auto& log : Exec("SHOW BINARY LOGS", "mysql")) {
      reader.argv.push_back(folder + log.at(0).value());
    }
    reader.separate_stderr = true;
    const auto read = testing::RunToEnd(std::move(reader), std::chrono::minutes(10));
    if (!read.error_output.empty()) throw std::runtime_error(read.error_output);
    std::istringstream lines(read.output);
    std::map<std::string, int> transactions;
    int transaction = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("START")) {
        ++transaction;
      } else {
        transactions[line] = transaction;
      }
    }
    return transactions;
  }
};

}  // namespace

std::unique_ptr<Database> MakeMariadb() { return std::make_unique<Mariadb>(); }

}  // namespace fencepost::matrix
