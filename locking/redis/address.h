// Where a lock node is: HOST:PORT, [V6]:PORT or unix:/path. Plain values; any thread.
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "locking/error.h"

namespace fencepost::locking {

struct NodeAddress {
  std::string text;  // as written
  std::string host;  // name or IP, without brackets; empty for a Unix socket
  std::string port;  // 1 to 65535, in digits
  std::string path;  // of a Unix socket
};

tl::expected<NodeAddress, Error> ParseNodeAddress(std::string_view text);

}  // namespace fencepost::locking
