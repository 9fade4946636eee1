#include "locking/redis/transport.h"

#include <asio/ip/address.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/ssl/host_name_verification.hpp>
#include <asio/write.hpp>

#include <system_error>
#include <utility>

namespace fencepost::locking {

Transport::Transport(asio::io_context& io, std::shared_ptr<asio::ssl::context> tls,
                     Listener& listener)
    : socket_(io), resolver_(io), tls_context_(std::move(tls)), listener_(&listener) {}

void Transport::Connect(const NodeAddress& address) {
  host_ = address.host;
  if (!address.path.empty()) {
    is_tcp_ = false;
    endpoints_.emplace_back(asio::local::stream_protocol::endpoint(address.path));
    TryNext();
    return;
  }
  std::error_code not_an_ip;
  const auto ip = asio::ip::make_address(address.host, not_an_ip);
  if (not_an_ip) {
    Resolve(address);
    return;
  }
  const auto port = static_cast<std::uint16_t>(std::stoi(address.port));
  endpoints_.emplace_back(asio::ip::tcp::endpoint(ip, port));
  TryNext();
}

void Transport::Resolve(const NodeAddress& address) {
  const auto resolved = [self = shared_from_this()](
                            std::error_code error,
                            const asio::ip::tcp::resolver::results_type& found) {
    if (self->listener_ == nullptr) return;
    if (error) {
      self->Break("the name cannot be resolved: " + error.message());
      return;
    }
    for (const auto& entry : found) self->endpoints_.emplace_back(entry.endpoint());
    self->TryNext();
  };
  resolver_.async_resolve(address.host, address.port, resolved);
}

void Transport::TryNext() {
  if (next_endpoint_ == endpoints_.size()) {
    Break(last_failure_.empty() ? "the name has no address" : last_failure_);
    return;
  }
  std::error_code ignored;
  socket_.close(ignored);
  socket_.async_connect(endpoints_[next_endpoint_++],
                        [self = shared_from_this()](std::error_code error) {
                          if (self->listener_ == nullptr) return;
                          if (error) {
                            self->last_failure_ = error.message();
                            self->TryNext();
                            return;
                          }
                          self->Connected();
                        });
}

void Transport::Connected() {
  std::error_code ignored;
  if (is_tcp_) {
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  }
  if (tls_context_ == nullptr || !is_tcp_) {
    Open();
    return;
  }
  tls_ = std::make_unique<asio::ssl::stream<Socket&>>(socket_, *tls_context_);
  tls_->set_verify_callback(asio::ssl::host_name_verification(host_), ignored);
  std::error_code not_an_ip;
  asio::ip::make_address(host_, not_an_ip);
  if (not_an_ip) SSL_set_tlsext_host_name(tls_->native_handle(), host_.c_str());
  tls_->async_handshake(asio::ssl::stream_base::client,
                        [self = shared_from_this()](std::error_code error) {
                          if (self->listener_ == nullptr) return;
                          if (error) {
                            self->Break("TLS: " + error.message());
                            return;
                          }
                          self->Open();
                        });
}

void Transport::Open() {
  open_ = true;
  Read();
  listener_->OnOpen();
}

template <typename Handler>
void Transport::ReadSome(Handler&& handler) {
  const auto buffer = asio::buffer(in_);
  if (tls_ != nullptr) {
    tls_->async_read_some(buffer, std::forward<Handler>(handler));
  } else {
    socket_.async_read_some(buffer, std::forward<Handler>(handler));
  }
}

void Transport::Read() {
  ReadSome([self = shared_from_this()](std::error_code error, std::size_t size) {
    if (self->listener_ == nullptr) return;
    if (error) {
      self->Break(error == asio::error::eof ? "the node closed the connection" : error.message());
      return;
    }
    self->listener_->OnBytes(std::string_view(self->in_.data(), size));
    if (self->listener_ != nullptr) self->Read();
  });
}

void Transport::Flush() {
  if (writing_ || !open_ || listener_ == nullptr || gathering_.empty()) return;
  writing_ = true;
  sending_.swap(gathering_);
  gathering_.clear();
  const auto written = [self = shared_from_this()](std::error_code error, std::size_t) {
    self->writing_ = false;
    if (self->listener_ == nullptr) return;
    if (error) {
      self->Break(error.message());
      return;
    }
    self->Flush();
  };
  if (tls_ != nullptr) {
    asio::async_write(*tls_, asio::buffer(sending_), written);
  } else {
    asio::async_write(socket_, asio::buffer(sending_), written);
  }
}

void Transport::Break(std::string_view why) {
  Listener* const listener = listener_;
  Close(true);
  listener->OnBroken(why);
}

void Transport::Close(bool discard) {
  listener_ = nullptr;
  std::error_code ignored;
  resolver_.cancel();
  if (discard && is_tcp_ && open_) {
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  }
  socket_.close(ignored);
}

}  // namespace fencepost::locking
