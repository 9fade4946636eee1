// How the lock nodes are reached. Plain values. Error lines name a setting as the service has it:
// lock.redis.tls.ca (--tls-ca) is tls_ca here, and so on.
#pragma once

#include <string>
#include <vector>

#include "locking/base/secret.h"

namespace fencepost::locking {

// A node: HOST:PORT, [V6]:PORT, unix:/path, or a URL: redis://[USER[:PASSWORD]@]HOST[:PORT],
// rediss:// the same over TLS, unix:///path. User, password and TLS of a URL count for that node,
// the fields below for those whose text says nothing about it. Names are looked up at every
// connect.
// Each member has an initializer, so that a user who names some of them is not warned (-Wextra).
struct RedisOptions {
  std::vector<std::string> nodes{};  // 1, 3, 5 or 7 independent primaries
  std::string username{};            // ACL user; empty: AUTH with the password only
  Secret password{};                 // empty: no AUTH; of a file, it is read at every connect
  bool tls = false;                  // TLS with the system's CAs; also on when a file below is set
  std::string tls_ca{};              // path; empty: the system's
  std::string tls_certificate{};  // path of our own certificate (chain), for nodes that ask for one
  std::string tls_key{};          // path of its key; both or none
  std::string tls_server_name{};  // checked instead of the host; for tunnels and IP addresses
};

}  // namespace fencepost::locking
