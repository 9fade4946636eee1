// How the lock nodes are reached. Plain values.
#pragma once

#include <string>
#include <vector>

namespace fencepost::locking {

struct RedisOptions {
  std::vector<std::string> nodes;  // HOST:PORT or unix:/path; 1, 3, 5 or 7 independent primaries
  std::string username;            // ACL user; empty: AUTH with the password only
  std::string password;            // empty: no AUTH
  std::string tls_ca;              // path; empty: no TLS
};

}  // namespace fencepost::locking
