// Real redis-server processes for tests; $FENCEPOST_REDIS_SERVER names another program that takes
// its configuration, such as valkey-server.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/process.h"

struct redisContext;

namespace fencepost::testing {

struct RedisServerOptions {
  bool appendonly = false;
  std::string maxmemory_policy = "noeviction";
  std::vector<std::string> config{};  // more lines of redis.conf: "maxmemory 3mb", "user …"
  std::map<std::string, std::string> env{};  // LD_PRELOAD and the like
  bool own_clock = false;                    // ShiftClock works (clock_shim.c is preloaded)
  std::string bind = "127.0.0.1";            // Command goes there
  int port = 0;                              // 0: a free one
  bool sentinel = false;                     // Redis Sentinel; `config` says what it watches
};

// One primary on 127.0.0.1 and on a Unix socket, without persistence unless asked for. The
// constructor returns when it answers PING. Address and socket stay the same over restarts.
class RedisServer {
 public:
  enum class Data { kKeep, kWipe };

  explicit RedisServer(RedisServerOptions options = {});

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string address() const;       // 127.0.0.1:PORT, or as bound
  [[nodiscard]] std::string unix_address() const;  // unix:/path
  [[nodiscard]] pid_t pid() const;                 // -1 when stopped

  // More lines of redis.conf instead of those that it was made with, from its next start on.
  void Configure(std::vector<std::string> lines) { options_.config = std::move(lines); }
  void Start();  // no effect when it runs
  void Stop();   // SIGTERM, and waits for the end
  void Kill();   // SIGKILL, and waits for the end
  // kKeep: the keys survive (saved first, unless there is an append-only file). kWipe: it comes
  // back empty.
  void Restart(Data data);
  void Pause();  // SIGSTOP: accepts connections, answers nothing
  void Resume();
  // From now on, over restarts too, its wall clock shows this machine's plus `shift`.
  void ShiftClock(std::chrono::milliseconds shift);
  // Any command, on a connection of its own as the default user. Integers as digits, nil as
  // "(nil)", arrays one element a line, errors as Redis words them ("ERR …", "NOAUTH …").
  std::string Command(const std::vector<std::string>& words) const;
  // How often this command ("set", "evalsha") has run since it started, by scripts too.
  std::int64_t Calls(std::string_view command) const;

 private:
  bool Ready() const;  // asked on its Unix socket: its port may speak TLS
  static std::string Ask(redisContext* connection, const std::vector<std::string>& words);

  RedisServerOptions options_;
  TempDir dir_;
  int port_ = 0;
  std::unique_ptr<Process> process_;
};

// N independent primaries.
class RedisServers {
 public:
  explicit RedisServers(int count, const RedisServerOptions& options = {});

  RedisServer& operator[](std::size_t node) { return *servers_.at(node); }
  [[nodiscard]] std::size_t size() const { return servers_.size(); }
  [[nodiscard]] std::vector<std::string> addresses() const;       // 127.0.0.1:PORT each
  [[nodiscard]] std::vector<std::string> unix_addresses() const;  // unix:/path each
  [[nodiscard]] std::string list() const;                         // addresses joined by commas

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
};

}  // namespace fencepost::testing
