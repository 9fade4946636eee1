#include "tests/support/postgres_server.h"

#include <libpq-fe.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::testing {
namespace {

constexpr Deadline kLimit = std::chrono::seconds(30);
constexpr const char* kUser = "postgres";  // PostgreSQL refuses to run as root

// Debian keeps the programs of each major version apart; take the newest.
std::string Program(const std::string& name) {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", ignored)) {
    const auto path = version.path() / "bin" / name;
    if (std::filesystem::exists(path)) found.push_back(path);
  }
  if (found.empty()) throw std::runtime_error(name + " not found: install postgresql-15");
  return std::max_element(found.begin(), found.end())->string();
}

// Each session is one of them, in a process group of its own.
std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string text = ReadFile(entry.path() / "stat");  // "PID (NAME) STATE PARENT …"
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;
    if (std::atoi(text.c_str() + name_end + 4) == parent) {
      children.push_back(static_cast<pid_t>(std::atoi(text.c_str())));
    }
  }
  return children;
}

class Session : public SqlSession {
 public:
  explicit Session(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str()), &PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
      throw std::runtime_error(PQerrorMessage(connection_.get()));
    }
  }

  Rows Exec(const std::string& sql) override {
    using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;
    const Result result(PQexec(connection_.get(), sql.c_str()), &PQclear);
    const ExecStatusType status = PQresultStatus(result.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY) {
      throw std::runtime_error(PQresultErrorMessage(result.get()));
    }
    Rows rows(static_cast<std::size_t>(PQntuples(result.get())));
    for (int r = 0; r < PQntuples(result.get()); ++r) {
      for (int c = 0; c < PQnfields(result.get()); ++c) {
        const bool null = PQgetisnull(result.get(), r, c) != 0;
        rows[static_cast<std::size_t>(r)].push_back(
            null ? std::nullopt : std::optional<std::string>(PQgetvalue(result.get(), r, c)));
      }
    }
    return rows;
  }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

}  // namespace

void PostgresServer::OwnFolder() const {
  if (geteuid() != 0) return;
  const auto chown = RunToEnd({.argv = {"chown", kUser, dir_.path().string()}});
  if (chown.exit_code != 0) throw std::runtime_error(chown.output);
}

PostgresServer::PostgresServer(PostgresOptions options) : options_(std::move(options)) {
  OwnFolder();
  ProcessOptions initdb;
  initdb.argv = {Program("initdb"), "--no-sync",  "--auth=trust", "--username=postgres",
                 "--encoding=UTF8", "--locale=C", "-D",           dir_.File("data")};
  initdb.user = kUser;
  initdb.directory = dir_.path().string();
  const Finished made = RunToEnd(std::move(initdb), kLimit);
  if (made.exit_code != 0) throw std::runtime_error("initdb: " + made.output);
  StartOnFreePort();
}

PostgresServer::PostgresServer(const PostgresServer& primary, int stream_port,
                               PostgresOptions options)
    : options_(std::move(options)) {
  OwnFolder();
  ProcessOptions copy;
  copy.argv = {
      Program("pg_basebackup"), "--dbname=" + primary.dsn(), "--pgdata=" + dir_.File("data"),
      "--write-recovery-conf",  "--checkpoint=fast",         "--no-sync"};
  copy.user = kUser;
  copy.directory = dir_.path().string();
  const Finished made = RunToEnd(std::move(copy), kLimit);
  if (made.exit_code != 0) throw std::runtime_error("pg_basebackup: " + made.output);
  options_.config.push_back(
      fmt::format("primary_conninfo=host=127.0.0.1 port={} user={} application_name=standby",
                  stream_port, kUser));
  StartOnFreePort();
}

void PostgresServer::StartOnFreePort() {
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

PostgresServer::~PostgresServer() { Stop(); }

std::string PostgresServer::dsn(const std::string& database, const std::string& user) const {
  return fmt::format("postgresql://{}@127.0.0.1:{}/{}", user, port_, database);
}

pid_t PostgresServer::pid() const { return process_ ? process_->pid() : -1; }

void PostgresServer::Start() {
  if (process_) return;
  ProcessOptions postgres;
  postgres.argv = {Program("postgres"),
                   "-D",
                   dir_.File("data"),
                   "-p",
                   std::to_string(port_),
                   "-c",
                   "listen_addresses=127.0.0.1",
                   "-c",
                   "unix_socket_directories=" + dir_.path().string(),
                   "-c",
                   fmt::format("fsync={}", options_.fsync ? "on" : "off"),
                   "-c",
                   "max_connections=100"};
  for (const std::string& line : options_.config) {
    postgres.argv.emplace_back("-c");
    postgres.argv.push_back(line);
  }
  postgres.user = kUser;
  postgres.directory = dir_.path().string();
  process_ = std::make_unique<Process>(postgres);
  const auto up = WaitUntil(kLimit, [&] {
    if (process_->Running()) return Ready();
    // After Kill: children of the old one are about to notice its death.
    if (process_->Output().find("pre-existing shared memory") == std::string::npos) return true;
    process_ = std::make_unique<Process>(postgres);
    return false;
  });
  if (up && process_->Running()) return;
  const std::string output = process_->Output();
  process_.reset();
  throw std::runtime_error(fmt::format("postgres on port {} did not start:\n{}", port_, output));
}

bool PostgresServer::Ready() const { return PQping(dsn().c_str()) == PQPING_OK; }

void PostgresServer::Stop() {
  if (!process_) return;
  Resume();
  process_->Kill(SIGINT);
  (void)process_->Wait(kLimit);
  process_.reset();
}

void PostgresServer::Kill() {
  Resume();  // a child that is stopped would not notice the death of its parent
  process_.reset();
  // A new postmaster refuses to start while children of the old one still hold its shared memory;
  // they notice its death within moments, and Start tries again until then.
  std::error_code ignored;
  std::filesystem::remove(dir_.path() / "data" / "postmaster.pid", ignored);
}

// The postmaster first: then there are no new children.
void PostgresServer::Pause() {
  if (!process_) return;
  process_->Kill(SIGSTOP);
  for (const pid_t child : ChildrenOf(pid())) kill(child, SIGSTOP);
}

void PostgresServer::Resume() {
  if (!process_) return;
  for (const pid_t child : ChildrenOf(pid())) kill(child, SIGCONT);
  process_->Kill(SIGCONT);
}

void PostgresServer::Promote() {
  if (Value("SELECT pg_promote(true, 30)") != "t") throw std::runtime_error("not promoted");
}

std::unique_ptr<SqlSession> PostgresServer::Open(const std::string& database,
                                                 const std::string& user) const {
  return std::make_unique<Session>(user.empty() ? dsn(database) : dsn(database, user));
}

}  // namespace fencepost::testing
