// One byte stream to one node, over TCP, TCP with TLS, or a Unix socket; it connects and fails
// once. All on the thread that runs the io_context.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>
#include <asio/ssl/stream.hpp>

#include "locking/redis/address.h"
#include "locking/redis/node_unavailable.h"
#include "locking/redis/session/name_lookup.h"

namespace fencepost::locking {

class Transport : public std::enable_shared_from_this<Transport> {
 public:
  class Listener {
   public:
    virtual void OnOpen() = 0;
    virtual void OnBytes(std::string_view bytes) = 0;  // `bytes` is good during the call only
    virtual void OnBroken(std::string_view why) = 0;   // at most once, and the last call

   protected:
    ~Listener() = default;
  };

  // `tls` may be null; it does not apply to Unix sockets. `names` may serve several transports to
  // one node. The listener is not called after Close.
  Transport(asio::io_context& io, std::shared_ptr<asio::ssl::context> tls, Listener& listener,
            std::shared_ptr<NameLookup> names);

  // Looks the name up, connects to the first address that answers, does the TLS handshake; then
  // OnOpen.
  void Connect(const NodeAddress& address);
  // What Connect is at, for messages; empty when open.
  [[nodiscard]] std::string_view Doing() const { return doing_; }
  // What it means that this takes too long; after OnBroken: why it broke.
  [[nodiscard]] UnavailableReason away() const { return away_; }
  // Append what is to be sent, then Flush. What is appended during a write goes out after it.
  std::string& out() { return gathering_; }
  void Flush();
  // `discard`: the kernel must not deliver later what it has not delivered yet.
  void Close(bool discard);

 private:
  using Socket = asio::generic::stream_protocol::socket;
  using Endpoint = asio::generic::stream_protocol::endpoint;

  void LookUpName(const NodeAddress& address);
  void TryNext();
  void Connected();
  void Handshake();
  void Open();
  void Read();
  void BreakBy(const std::error_code& error);
  void Break(UnavailableReason away, std::string_view why);

  Socket socket_;
  std::shared_ptr<NameLookup> names_;
  std::shared_ptr<asio::ssl::context> tls_context_;
  std::unique_ptr<asio::ssl::stream<Socket&>> tls_;
  Listener* listener_;      // null once closed
  const void* const user_;  // of the name: the listener, which outlives this attempt
  std::string server_name_;
  bool is_tcp_ = true;
  bool is_name_ = false;
  std::string_view doing_;
  UnavailableReason away_ = UnavailableReason::kTimeout;
  std::vector<Endpoint> endpoints_;
  std::size_t next_endpoint_ = 0;
  std::error_code last_failure_;
  bool open_ = false;
  bool heard_ = false;  // anything from the node, behind the handshake
  bool writing_ = false;
  std::string gathering_;
  std::string sending_;
  std::array<char, 64 * 1024> in_;
};

}  // namespace fencepost::locking
