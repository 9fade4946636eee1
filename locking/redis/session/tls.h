// TLS to the nodes: at least 1.2, the node's certificate is checked for its signer, its time and
// its name, and ours is shown where the node asks. Contexts may be shared by connections of one
// thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <asio/ssl/context.hpp>
#include <tl/expected.hpp>

#include "locking/base/error.h"
#include "locking/redis/options.h"

namespace fencepost::locking {

using TlsContext = std::shared_ptr<asio::ssl::context>;

// Reads the files. Errors: bad_options, with the file's name and what to do.
tl::expected<TlsContext, Error> MakeTls(const RedisOptions& redis);

// Before the handshake: the certificate must be for `name` (a DNS name or an IP address), and a DNS
// name is sent to the node (SNI). False: OpenSSL takes no such name.
bool ExpectName(SSL* ssl, const std::string& name);

// What the error of a handshake, of a read or of a write means, and what to do, in one line; empty
// when it does not come from TLS.
std::string WhyTlsFailed(const std::error_code& error, const SSL* ssl, std::string_view name);

}  // namespace fencepost::locking
