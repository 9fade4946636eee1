#include "locking/redis/engine/access.h"

#include <fmt/format.h>

#include <map>
#include <random>
#include <string>
#include <utility>

#include "locking/core/ops.h"
#include "locking/redis/session/session_pump.h"
#include "locking/redis/session/tls.h"

namespace fencepost::locking {
namespace {

Error BadList(std::string what, std::string where, std::string hint) {
  return {"bad_options", std::move(what), std::move(where), std::move(hint)};
}

// A URL's own login and TLS, and the common ones for what it does not say.
ConnectionOptions Access(const RedisOptions& redis, NodeAddress address) {
  ConnectionOptions access;
  access.username = address.username.value_or(redis.username);
  // A URL with a user of its own and no password logs that user in with the common password.
  access.password = address.password ? Secret(*address.password) : redis.password;
  address.server_name = redis.tls_server_name;
  access.address = std::move(address);
  return access;
}

bool CommonTls(const RedisOptions& redis) {
  return redis.tls || !redis.tls_ca.empty() || !redis.tls_certificate.empty() ||
         !redis.tls_key.empty() || !redis.tls_server_name.empty();
}

bool UsesTls(const RedisOptions& redis, const NodeAddress& address) {
  return address.path.empty() && address.tls.value_or(CommonTls(redis));
}

bool NeedsTls(const RedisOptions& redis) {
  if (CommonTls(redis)) return true;
  for (const std::string& text : redis.nodes) {
    const auto address = ParseNodeAddress(text);
    if (address && UsesTls(redis, *address)) return true;
  }
  return false;
}

}  // namespace

std::optional<Error> ProblemOf(const RedisOptions& redis) {
  const std::size_t count = redis.nodes.size();
  if (count % 2 == 0 || count > kMaxNodes) {
    return BadList(fmt::format("{} lock nodes are listed", count), "",
                   "list 1, 3, 5 or 7 independent primaries");
  }
  std::map<std::string, std::string> seen;  // what is reached → as written
  for (const std::string& text : redis.nodes) {
    const auto address = ParseNodeAddress(text);
    if (!address) {
      return BadList(address.error().what, address.error().where, address.error().hint);
    }
    const auto [first, is_new] = seen.emplace(ReachedBy(*address), address->text);
    if (!is_new) {
      return BadList(first->second == address->text
                         ? "is listed twice"
                         : fmt::format("is listed twice: as {} too", first->second),
                     address->text, "list each node once; each is an independent primary");
    }
    const ConnectionOptions access = Access(redis, *address);
    if (!access.username.empty() && access.password.empty()) {
      return BadList("a user without a password", address->text,
                     "give the password of the user, or leave the user out");
    }
  }
  return std::nullopt;
}

std::optional<Error> TlsProblemOf(const RedisOptions& redis) {
  if (!NeedsTls(redis)) return std::nullopt;
  auto tls = MakeTls(redis);
  if (tls) return std::nullopt;
  return std::move(tls.error());
}

std::vector<ConnectionOptions> MakeConnections(const RedisOptions& redis, const LockOptions& lock) {
  tl::expected<TlsContext, Error> tls = nullptr;
  if (NeedsTls(redis)) tls = MakeTls(redis);
  std::random_device seeds;
  std::vector<ConnectionOptions> all;
  for (const std::string& text : redis.nodes) {
    const auto address = ParseNodeAddress(text);
    ConnectionOptions connection;
    if (address) {
      connection = Access(redis, *address);
      if (UsesTls(redis, *address)) {
        if (tls) connection.tls = *tls;
        if (!tls) connection.problem = tls.error().Line();
        connection.problem_code = UnavailableReason::kTls;
      }
    } else {
      connection.address.text = RedactedAddress(text);
      connection.problem = fmt::format("{}; {}", address.error().what, address.error().hint);
    }
    connection.lock = lock;
    connection.seed = seeds();
    all.push_back(std::move(connection));
  }
  return all;
}

}  // namespace fencepost::locking
