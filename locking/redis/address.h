// Where a lock node is, as text: HOST:PORT, [V6]:PORT, unix:/path, or a URL (options.h). Plain
// values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "locking/base/error.h"

namespace fencepost::locking {

struct NodeAddress {
  std::string text;  // for people: as written, without user and password
  std::string host;  // name or IP, without brackets; empty for a Unix socket
  std::string port;  // 1 to 65535, in digits
  std::string path;  // of a Unix socket
  // What a URL says of the login and of TLS; nothing: the options of all nodes count.
  std::optional<std::string> username;
  std::optional<std::string> password;
  std::optional<bool> tls;
  std::string server_name;  // that the certificate must be for; empty: the host
};

// The error (bad_config) holds no user and no password.
tl::expected<NodeAddress, Error> ParseNodeAddress(std::string_view text);

// What the address reaches: the same for all spellings of it. Names are not looked up.
std::string ReachedBy(const NodeAddress& address);

// A node's text, good or bad, for logs and messages: without what may be a user or a password.
std::string RedactedAddress(std::string_view text);

}  // namespace fencepost::locking
