#include "tests/support/redis_server.h"
#include "tests/support/paths.h"

#include <hiredis/hiredis.h>

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace fencepost::testing {
namespace {

constexpr Deadline kStartLimit = std::chrono::seconds(20);

std::string Text(const redisReply* reply) {
  switch (reply->type) {
    case REDIS_REPLY_INTEGER:
      return std::to_string(reply->integer);
    case REDIS_REPLY_NIL:
      return "(nil)";
    case REDIS_REPLY_ARRAY: {
      std::string text;
      for (std::size_t i = 0; i < reply->elements; ++i) {
        if (i > 0) text += '\n';
        text += Text(reply->element[i]);
      }
      return text;
    }
    default:
      return {reply->str, reply->len};
  }
}

std::string Program() {
  const char* other = std::getenv("FENCEPOST_REDIS_SERVER");
  return other == nullptr ? "redis-server" : other;
}

std::string Join(const std::vector<std::string>& words, const char* separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

}  // namespace

RedisServer::RedisServer(RedisServerOptions options) : options_(std::move(options)) {
  if (options_.own_clock) {
    const std::string none(sizeof(std::int64_t), '\0');
    options_.env["FENCEPOST_CLOCK_FILE"] = dir_.Write("clock", none);
    options_.env["LD_PRELOAD"] = ClockShim();
  }
  // A port may be lost to a program that is not ours between the look and the start.
  for (int tries = 1;; ++tries) {
    port_ = options_.port == 0 ? FreePort() : options_.port;
    try {
      Start();
      return;
    } catch (const std::runtime_error&) {
      if (tries == 3) throw;
    }
  }
}

std::string RedisServer::address() const { return fmt::format("{}:{}", options_.bind, port_); }
std::string RedisServer::unix_address() const { return "unix:" + dir_.File("s"); }
pid_t RedisServer::pid() const { return process_ ? process_->pid() : -1; }

void RedisServer::Start() {
  if (process_) return;
  std::string conf = fmt::format(
      "port {}\nbind {}\nunixsocket {}\ndir {}\nsave \"\"\nappendonly {}\n"
      "maxmemory-policy {}\nprotected-mode no\ndaemonize no\n",
      port_, options_.bind, dir_.File("s"), dir_.path().string(),
      options_.appendonly ? "yes" : "no", options_.maxmemory_policy);
  for (const std::string& line : options_.config) conf += line + "\n";
  const std::string path = dir_.Write("redis.conf", conf);
  ProcessOptions process;
  process.argv = {Program(), path};
  if (options_.sentinel) process.argv.emplace_back("--sentinel");
  process.env = options_.env;
  process_ = std::make_unique<Process>(std::move(process));
  bool died = false;
  const auto up = WaitUntil(kStartLimit, [&] { return (died = !process_->Running()) || Ready(); });
  if (up && !died) return;
  const std::string output = process_->Output();
  process_.reset();
  throw std::runtime_error(
      fmt::format("redis-server on port {} did not start:\n{}", port_, output));
}

bool RedisServer::Ready() const {
  const timeval limit{5, 0};
  const std::string answer =
      Ask(redisConnectUnixWithTimeout(dir_.File("s").c_str(), limit), {"PING"});
  return answer == "PONG" || answer.starts_with("NOAUTH") || answer.starts_with("NOPERM");
}

void RedisServer::Stop() {
  if (!process_) return;
  Resume();
  process_->Kill(SIGTERM);
  if (!process_->Wait(std::chrono::seconds(10))) Kill();
  process_.reset();
}

void RedisServer::Kill() { process_.reset(); }

void RedisServer::Restart(Data data) {
  if (process_ && data == Data::kKeep && !options_.appendonly) {
    const std::string saved = Command({"SAVE"});
    if (saved != "OK") throw std::runtime_error("redis SAVE: " + saved);
  }
  Kill();
  if (data == Data::kWipe) {
    std::filesystem::remove(dir_.path() / "dump.rdb");
    std::filesystem::remove_all(dir_.path() / "appendonlydir");
  }
  Start();
}

void RedisServer::Pause() {
  if (process_) process_->Kill(SIGSTOP);
}

void RedisServer::Resume() {
  if (process_) process_->Kill(SIGCONT);
}

void RedisServer::ShiftClock(std::chrono::milliseconds shift) {
  const std::int64_t count = std::chrono::nanoseconds(shift).count();
  const int fd = open(dir_.File("clock").c_str(), O_WRONLY | O_CLOEXEC);
  const bool done = fd >= 0 && pwrite(fd, &count, sizeof(count), 0) == sizeof(count);
  if (fd >= 0) close(fd);
  if (!done) throw std::runtime_error("ShiftClock: a server without own_clock");
}

std::string RedisServer::Command(const std::vector<std::string>& words) const {
  const timeval limit{5, 0};
  return Ask(redisConnectWithTimeout(options_.bind.c_str(), port_, limit), words);
}

std::int64_t RedisServer::Calls(std::string_view command) const {
  const std::string stats = Command({"INFO", "commandstats"});
  const std::string field = fmt::format("cmdstat_{}:calls=", command);
  const std::size_t at = stats.find(field);
  std::int64_t calls = 0;
  if (at != std::string::npos) {
    std::from_chars(stats.data() + at + field.size(), stats.data() + stats.size(), calls);
  }
  return calls;
}

std::string RedisServer::Ask(redisContext* context, const std::vector<std::string>& words) {
  const timeval limit{5, 0};
  const std::unique_ptr<redisContext, decltype(&redisFree)> connection(context, &redisFree);
  if (!connection || connection->err != 0) return "(no connection)";
  redisSetTimeout(connection.get(), limit);
  std::vector<const char*> pointers;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) {
    pointers.push_back(word.data());
    sizes.push_back(word.size());
  }
  const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(
      static_cast<redisReply*>(redisCommandArgv(connection.get(), static_cast<int>(words.size()),
                                                pointers.data(), sizes.data())),
      &freeReplyObject);
  return reply ? Text(reply.get()) : "(no answer)";
}

RedisServers::RedisServers(int count, const RedisServerOptions& options) {
  for (int i = 0; i < count; ++i) servers_.push_back(std::make_unique<RedisServer>(options));
}

std::vector<std::string> RedisServers::addresses() const {
  std::vector<std::string> all;
  for (const auto& server : servers_) all.push_back(server->address());
  return all;
}

std::vector<std::string> RedisServers::unix_addresses() const {
  std::vector<std::string> all;
  for (const auto& server : servers_) all.push_back(server->unix_address());
  return all;
}

std::string RedisServers::list() const { return Join(addresses(), ","); }

}  // namespace fencepost::testing
