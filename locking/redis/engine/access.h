// What RedisOptions amount to for each node: where it is, who logs in, and by which TLS. May be
// called from any thread. Shows no Asio and no OpenSSL.
#pragma once

#include <optional>
#include <vector>

#include "locking/base/error.h"
#include "locking/core/options.h"
#include "locking/redis/options.h"

namespace fencepost::locking {

struct ConnectionOptions;

// What keeps the options from use, without asking the network: a number of nodes that makes no
// quorum, an address, a node that is listed twice, a user without password. With its place and
// what to do; it holds no password.
std::optional<Error> ProblemOf(const RedisOptions& redis);
// The same of the TLS files, which it reads: missing, unreadable, key and certificate of different
// pairs. Nothing when no node is reached by TLS.
std::optional<Error> TlsProblemOf(const RedisOptions& redis);

// In the order of the nodes, at least one. `problem` says what is wrong with a node.
std::vector<ConnectionOptions> MakeConnections(const RedisOptions& redis, const LockOptions& lock);

}  // namespace fencepost::locking
