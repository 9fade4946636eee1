#include "metrics/http/connection.h"

#include <utility>

#include <openssl/ssl.h>
#include <asio/post.hpp>
#include <asio/write.hpp>

namespace fencepost::metrics {
namespace {

// For a client to read what it was told, and to close.
constexpr std::chrono::milliseconds kGoodbye{1'000};

}  // namespace

Connection::Connection(Socket socket, Certificates::Context tls, const HttpLimits& limits,
                       const Answers& answers, asio::thread_pool& pool, OnEnd on_end)
    : socket_(std::move(socket)),
      context_(std::move(tls)),
      limits_(limits),
      answers_(answers),
      pool_(pool),
      on_end_(std::move(on_end)),
      timer_(socket_.get_executor()),
      request_(limits.head, limits.body) {
  if (context_) tls_.emplace(socket_, *context_);
}

template <typename Do>
void Connection::WithStream(Do what) {
  if (tls_) {
    what(*tls_);
  } else {
    what(socket_);
  }
}

void Connection::Start() {
  timer_.expires_after(limits_.request);
  timer_.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (!error) self->OnLate();
  });
  if (!tls_) return Read();
  tls_->async_handshake(asio::ssl::stream_base::server,
                        [self = shared_from_this()](const std::error_code& error) {
                          if (error) return self->End();
                          self->Read();
                        });
}

void Connection::End() {
  if (!on_end_) return;
  timer_.cancel();
  std::error_code ignored;
  socket_.close(ignored);
  std::exchange(on_end_, nullptr)(this);
}

// Who has begun a request is told that it was too slow.
void Connection::OnLate() {
  if (asked_) return;  // it came as the time ran out
  if (!request_.begun()) return End();
  request_.Refuse(408, "the request did not come in time");
  std::error_code ignored;
  socket_.cancel(ignored);  // the read
}

void Connection::EndAfter(std::chrono::milliseconds limit) {
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (!error) self->End();
  });
}

void Connection::Read() {
  WithStream([this](auto& stream) {
    stream.async_read_some(
        asio::buffer(buffer_),
        [self = shared_from_this()](const std::error_code& error, std::size_t size) {
          if (error && !self->request_.refusal()) return self->End();
          self->OnRead(error ? 0 : size);
        });
  });
}

void Connection::OnRead(std::size_t size) {
  if (!request_.Take({buffer_.data(), size})) return Read();
  asked_ = true;
  timer_.cancel();
  asio::post(pool_, [self = shared_from_this(), asker = WhoAsks()]() mutable {
    std::string answer = self->answers_.To(self->request_, asker);
    const auto sockets = self->socket_.get_executor();
    asio::post(sockets, [self = std::move(self), answer = std::move(answer)]() mutable {
      self->Send(std::move(answer));
    });
  });
}

Asker Connection::WhoAsks() {
  std::error_code ignored;
  asio::ip::address address = socket_.remote_endpoint(ignored).address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  // The handshake has checked one that came.
  return {address.to_string(),
          tls_.has_value() && SSL_get0_peer_certificate(tls_->native_handle()) != nullptr};
}

void Connection::Send(std::string answer) {
  if (!on_end_) return;
  answer_ = std::move(answer);
  EndAfter(limits_.answer);
  WithStream([this](auto& stream) {
    asio::async_write(stream, asio::buffer(answer_),
                      [self = shared_from_this()](const std::error_code& error, std::size_t) {
                        if (error) return self->End();
                        self->SayGoodbye();
                      });
  });
}

void Connection::SayGoodbye() {
  EndAfter(kGoodbye);
  const auto then = [self = shared_from_this()](const std::error_code&) {
    std::error_code ignored;
    self->socket_.shutdown(Socket::shutdown_send, ignored);
    self->Drain();
  };
  if (!tls_) return then({});
  tls_->async_shutdown(then);
}

// Bytes that nobody reads would make the end a reset, and the client might not read the answer.
void Connection::Drain() {
  socket_.async_read_some(asio::buffer(buffer_),
                          [self = shared_from_this()](const std::error_code& error, std::size_t) {
                            if (error) return self->End();
                            self->Drain();
                          });
}

}  // namespace fencepost::metrics
