#include "locking/redis/session/transport.h"

#include <fcntl.h>

#include <asio/ip/address.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/ssl/error.hpp>
#include <asio/write.hpp>

#include <cstring>
#include <system_error>
#include <utility>

#include "locking/redis/session/tls.h"

namespace fencepost::locking {

Transport::Transport(asio::io_context& io, std::shared_ptr<asio::ssl::context> tls,
                     Listener& listener, std::shared_ptr<NameLookup> names)
    : socket_(io),
      names_(std::move(names)),
      tls_context_(std::move(tls)),
      listener_(&listener),
      user_(&listener) {}

void Transport::Connect(const NodeAddress& address) {
  server_name_ = address.server_name.empty() ? address.host : address.server_name;
  if (!address.path.empty()) {
    is_tcp_ = false;
    endpoints_.emplace_back(asio::local::stream_protocol::endpoint(address.path));
    TryNext();
    return;
  }
  std::error_code not_an_ip;
  const auto ip = asio::ip::make_address(address.host, not_an_ip);
  if (not_an_ip) return LookUpName(address);
  const auto port = static_cast<std::uint16_t>(std::stoi(address.port));
  endpoints_.emplace_back(asio::ip::tcp::endpoint(ip, port));
  TryNext();
}

void Transport::LookUpName(const NodeAddress& address) {
  is_name_ = true;
  doing_ = "looking the name up";
  away_ = UnavailableReason::kNameTimeout;
  // Weakly: the lookup must not keep the transport for as long as it takes.
  const auto found = [weak = weak_from_this()](LookedUp looked_up) {
    const auto self = weak.lock();
    if (self == nullptr || self->listener_ == nullptr) return;
    if (!looked_up)
      return self->Break(UnavailableReason::kNameUnknown,
                         "the name cannot be resolved: " + looked_up.error());
    const TcpEndpoints turns = self->names_->InTurn(self->user_, std::move(*looked_up));
    self->endpoints_.assign(turns.begin(), turns.end());
    self->TryNext();
  };
  names_->Begin(this, address.host, address.port, found);
}

void Transport::TryNext() {
  if (next_endpoint_ == endpoints_.size()) return BreakBy(last_failure_);
  doing_ = "connecting";
  away_ = UnavailableReason::kTimeout;
  std::error_code ignored;
  socket_.close(ignored);
  const Endpoint& endpoint = endpoints_[next_endpoint_++];
  if (is_name_) {
    asio::ip::tcp::endpoint tcp;
    std::memcpy(tcp.data(), endpoint.data(), endpoint.size());
    tcp.resize(endpoint.size());
    names_->Trying(user_, tcp);
  }
  socket_.open(endpoint.protocol(), ignored);  // asio opens it inheritable
  if (socket_.is_open()) fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
  socket_.async_connect(endpoint, [self = shared_from_this()](std::error_code error) {
    if (self->listener_ == nullptr) return;
    if (error) {
      self->last_failure_ = error;
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
  } else {
    Handshake();
  }
}

void Transport::Handshake() {
  doing_ = "TLS handshake";
  tls_ = std::make_unique<asio::ssl::stream<Socket&>>(socket_, *tls_context_);
  if (!ExpectName(tls_->native_handle(), server_name_))
    return Break(UnavailableReason::kTls,
                 "TLS: " + server_name_ + " is no name that a certificate can be for");
  tls_->async_handshake(asio::ssl::stream_base::client,
                        [self = shared_from_this()](std::error_code error) {
                          if (self->listener_ == nullptr) return;
                          if (error) return self->BreakBy(error);
                          self->Open();
                        });
}

void Transport::Open() {
  open_ = true;
  doing_ = {};
  Read();
  listener_->OnOpen();
}

void Transport::Read() {
  const auto read = [self = shared_from_this()](std::error_code error, std::size_t size) {
    if (self->listener_ == nullptr) return;
    if (error) return self->BreakBy(error);
    if (!std::exchange(self->heard_, true)) self->names_->Worked(self->user_);
    self->listener_->OnBytes(std::string_view(self->in_.data(), size));
    if (self->listener_ != nullptr) self->Read();
  };
  tls_ != nullptr ? tls_->async_read_some(asio::buffer(in_), read)
                  : socket_.async_read_some(asio::buffer(in_), read);
}

void Transport::Flush() {
  if (writing_ || !open_ || listener_ == nullptr || gathering_.empty()) return;
  writing_ = true;
  sending_.swap(gathering_);
  gathering_.clear();
  const auto written = [self = shared_from_this()](std::error_code error, std::size_t) {
    self->writing_ = false;
    if (self->listener_ == nullptr) return;
    // A node that refuses our certificate under TLS 1.3 says so after the handshake, and closes:
    // the write fails first, the words are still to be read.
    if (error && self->tls_ != nullptr && !self->heard_) return;
    if (error) return self->BreakBy(error);
    self->Flush();
  };
  tls_ != nullptr ? asio::async_write(*tls_, asio::buffer(sending_), written)
                  : asio::async_write(socket_, asio::buffer(sending_), written);
}

void Transport::BreakBy(const std::error_code& error) {
  UnavailableReason away = error == asio::error::connection_refused ? UnavailableReason::kRefused
                                                                    : UnavailableReason::kOther;
  std::string why = error.message();
  const bool closed = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
  if (closed) why = "the node closed the connection";
  if (tls_ != nullptr) {
    const std::string tls = WhyTlsFailed(error, tls_->native_handle(), server_name_);
    if (!heard_ || !tls.empty()) away = UnavailableReason::kTls;
    if (!tls.empty()) {
      why = tls;
    } else if (!open_) {
      why = "TLS: " + why + " during the handshake; see the node's log, and whether it speaks TLS";
    } else if (!heard_) {
      why = "TLS: " + why +
            " right after the handshake, as with TLS 1.3 it does where it does not accept our "
            "certificate; see the node's log and lock.redis.tls.certificate (--tls-cert)";
    }
  }
  Break(away, why);
}

void Transport::Break(UnavailableReason away, std::string_view why) {
  Listener* const listener = listener_;
  away_ = away;
  Close(true);
  listener->OnBroken(why);
}

void Transport::Close(bool discard) {
  listener_ = nullptr;
  std::error_code ignored;
  names_->Cancel(this);
  if (discard && is_tcp_ && open_) {
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  }
  socket_.close(ignored);
}

}  // namespace fencepost::locking
