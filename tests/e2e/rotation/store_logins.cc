// Lock nodes and databases.
#include <stdexcept>

#include <fmt/format.h>

#include "tests/e2e/rotation/login.h"
#include "tests/support/postgres_login.h"

namespace fencepost::testing {
namespace {

// In place of its first `from`.
void Replace(std::string& text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
}

class RedisLogin : public Login {
 public:
  void AddTo(PipelineText& text, const std::string& secret) const override {
    text.login = ", username: rotated, password: " + secret;
  }
  void Take(const std::vector<std::string>& secrets) override {
    std::vector<std::string> words{"ACL", "SETUSER", "rotated", "on",
                                   "~*",  "&*",      "+@all",   "resetpass"};
    for (const std::string& secret : secrets) words.push_back(">" + secret);
    Tell(words);
  }
  void Disconnect() override { Tell({"CLIENT", "KILL", "USER", "rotated"}); }
  [[nodiscard]] bool LetsIn(const std::string& secret) const override {
    return RotationNodes()[0].Command({"AUTH", "rotated", secret}) == "OK";
  }
  [[nodiscard]] std::string refusal() const override { return "WRONGPASS"; }

 private:
  static void Tell(const std::vector<std::string>& words) {
    for (std::size_t node = 0; node < RotationNodes().size(); ++node) {
      const std::string answer = RotationNodes()[node].Command(words);
      if (answer.starts_with("ERR") || answer.starts_with("(")) throw std::runtime_error(answer);
    }
  }
};

class PostgresLogin : public Login {
 public:
  PostgresLogin() {
    if (RotationPostgres().Value("SELECT count(*) FROM pg_roles WHERE rolname = 'rotated'") ==
        "0") {
      RotationPostgres().Exec("CREATE ROLE rotated SUPERUSER LOGIN");
    }
  }
  void AddTo(PipelineText& text, const std::string& secret) const override {
    Replace(text.dsn, "postgres@", "rotated@");
    text.dsn += "\n    password: " + secret;
  }
  void Take(const std::vector<std::string>& secrets) override {
    RotationPostgres().Exec(fmt::format("ALTER ROLE rotated PASSWORD '{}'", secrets.back()));
  }
  void Disconnect() override {
    RotationPostgres().Exec(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotated'");
  }
  [[nodiscard]] bool LetsIn(const std::string& secret) const override {
    try {
      (void)RotationPostgres().Open("postgres", "rotated:" + secret);
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }
  [[nodiscard]] std::string refusal() const override { return "password authentication failed"; }
};

class MysqlLogin : public Login {
 public:
  MysqlLogin() {
    RotationMysql().Exec("CREATE OR REPLACE USER rotated@'127.0.0.1'");
    RotationMysql().Exec("GRANT ALL ON *.* TO rotated@'127.0.0.1'");
  }
  void AddTo(PipelineText& text, const std::string& secret) const override {
    Replace(text.mysql, "user: app", "user: rotated\n    password: " + secret);
  }
  void Take(const std::vector<std::string>& secrets) override {
    RotationMysql().Exec(
        fmt::format("ALTER USER rotated@'127.0.0.1' IDENTIFIED BY '{}'", secrets.back()));
  }
  void Disconnect() override { RotationMysql().Exec("KILL HARD USER rotated@'127.0.0.1'"); }
  [[nodiscard]] bool LetsIn(const std::string& secret) const override {
    return RunToEnd({.argv = {"mariadb", "--no-defaults", "--host=127.0.0.1", "--user=rotated",
                              fmt::format("--port={}", RotationMysql().port()),
                              "--password=" + secret, "--execute=SELECT 1"}})
               .exit_code == 0;
  }
  [[nodiscard]] std::string refusal() const override { return "Access denied"; }
  [[nodiscard]] SqlServer& database() const override { return RotationMysql(); }
};

}  // namespace

RedisServers& RotationNodes() {
  static const auto nodes = [] {
    auto servers = std::make_unique<RedisServers>(3);
    InitLocks(*servers);
    return servers;
  }();
  return *nodes;
}

PostgresServer& RotationPostgres() {
  static const auto server = [] {
    auto made = std::make_unique<PostgresServer>();
    DemandPasswords(*made);
    return made;
  }();
  return *server;
}

MysqlServer& RotationMysql() {
  static MysqlServer server;
  return server;
}

std::unique_ptr<Login> MakeRedisLogin() { return std::make_unique<RedisLogin>(); }
std::unique_ptr<Login> MakePostgresLogin() { return std::make_unique<PostgresLogin>(); }
std::unique_ptr<Login> MakeMysqlLogin() { return std::make_unique<MysqlLogin>(); }

}  // namespace fencepost::testing
