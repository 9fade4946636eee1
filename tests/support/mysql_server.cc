#include "tests/support/mysql_server.h"

#include <mysql.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::testing {
namespace {

constexpr Deadline kLimit = std::chrono::seconds(60);
constexpr const char* kUser = "mysql";  // of the system: the server does not run as root

constexpr const char* kAll = "app";  // may do everything

class Session : public SqlSession {
 public:
  Session(int port, const std::string& database, const std::string& user)
      : connection_(mysql_init(nullptr), &mysql_close) {
    const unsigned seconds = 5;
    mysql_options(mysql(), MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    mysql_options(mysql(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(mysql(), "127.0.0.1", user.c_str(), "", database.c_str(),
                           static_cast<unsigned>(port), nullptr,
                           CLIENT_MULTI_STATEMENTS) == nullptr) {
      Fail();
    }
  }

  Rows Exec(const std::string& sql) override {
    if (mysql_real_query(mysql(), sql.data(), sql.size()) != 0) Fail();
    Rows rows;
    for (;;) {
      if (MYSQL_RES* const result = mysql_store_result(mysql())) {
        rows = Take(result);
        mysql_free_result(result);
      }
      const int more = mysql_next_result(mysql());
      if (more < 0) return rows;
      if (more > 0) Fail();
    }
  }

 private:
  [[nodiscard]] MYSQL* mysql() const { return connection_.get(); }
  [[noreturn]] void Fail() const { throw std::runtime_error(mysql_error(mysql())); }
  static Rows Take(MYSQL_RES* result) {
    Rows rows;
    while (const MYSQL_ROW row = mysql_fetch_row(result)) {
      const unsigned long* lengths = mysql_fetch_lengths(result);
      Row& cells = rows.emplace_back();
      for (unsigned i = 0; i < mysql_num_fields(result); ++i) {
        cells.push_back(row[i] == nullptr ? std::nullopt
                                          : std::optional(std::string(row[i], lengths[i])));
      }
    }
    return rows;
  }

  std::unique_ptr<MYSQL, decltype(&mysql_close)> connection_;
};

}  // namespace

MysqlServer::MysqlServer(MysqlServerOptions options) : options_(std::move(options)) {
  if (options_.folder.empty()) options_.folder = dir_.File("data");
  std::ofstream(dir_.File("init.sql")) << "CREATE USER IF NOT EXISTS app@'127.0.0.1';\n"
                                          "GRANT ALL ON *.* TO app@'127.0.0.1'"
                                          " WITH GRANT OPTION;\n";
  // Not /tmp: a server that starts removes what others have there.
  std::filesystem::create_directory(dir_.File("tmp"));
  ProcessOptions install;
  install.argv = {"mariadb-install-db",
                  "--no-defaults",
                  "--skip-test-db",
                  "--auth-root-authentication-method=normal",
                  "--datadir=" + options_.folder,
                  "--tmpdir=" + dir_.File("tmp")};
  if (geteuid() == 0) {
    const auto chown = RunToEnd({.argv = {"chown", "-R", kUser, dir_.path().string()}});
    if (chown.exit_code != 0) throw std::runtime_error(chown.output);
    install.argv.push_back(fmt::format("--user={}", kUser));
  }
  const Finished made = RunToEnd(std::move(install), kLimit);
  if (made.exit_code != 0) throw std::runtime_error("mariadb-install-db: " + made.output);
  for (int tries = 1;; ++tries) {
    port_ = FreePort();
    try {
      Start();
      return;
    } catch (const std::runtime_error&) {
      if (tries == 3) throw;
    }
  }
}

MysqlServer::~MysqlServer() { Stop(); }

consumer::MysqlOptions MysqlServer::Options(const std::string& database) const {
  consumer::MysqlOptions options;
  options.host = "127.0.0.1";
  options.port = port_;
  options.user = "app";
  options.database = database;
  return options;
}

pid_t MysqlServer::pid() const { return process_ ? process_->pid() : -1; }

void MysqlServer::Start() {
  if (process_) return;
  ProcessOptions server;
  server.argv = {"mariadbd",
                 "--no-defaults",
                 "--datadir=" + options_.folder,
                 "--tmpdir=" + dir_.File("tmp"),
                 "--bind-address=127.0.0.1",
                 fmt::format("--port={}", port_),
                 "--socket=" + dir_.File("socket"),
                 "--pid-file=" + dir_.File("pid"),
                 "--init-file=" + dir_.File("init.sql"),
                 "--innodb-buffer-pool-size=64M",
                 "--innodb-log-file-size=16M",
                 "--innodb-flush-log-at-trx-commit=1",
                 "--skip-name-resolve"};
  server.argv.insert(server.argv.end(), options_.arguments.begin(), options_.arguments.end());
  if (geteuid() == 0) server.argv.push_back(fmt::format("--user={}", kUser));
  server.directory = dir_.path().string();
  process_ = std::make_unique<Process>(server);
  const bool up = WaitUntil(kLimit, [&] { return !process_->Running() || Ready(); });
  if (up && process_->Running()) return;
  const std::string output = process_->Output();
  process_.reset();
  throw std::runtime_error(fmt::format("mariadbd on port {} did not start:\n{}", port_, output));
}

bool MysqlServer::Ready() const {
  try {
    (void)Open("mysql");
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

void MysqlServer::Stop() {
  if (!process_) return;
  Resume();
  process_->Kill(SIGTERM);
  (void)process_->Wait(kLimit);
  process_.reset();
}

void MysqlServer::Kill() { process_.reset(); }

void MysqlServer::Pause() {
  if (process_) process_->Kill(SIGSTOP);
}

void MysqlServer::Resume() {
  if (process_) process_->Kill(SIGCONT);
}

std::unique_ptr<SqlSession> MysqlServer::Open(const std::string& database,
                                              const std::string& user) const {
  return std::make_unique<Session>(port_, database, user.empty() ? kAll : user);
}

}  // namespace fencepost::testing
