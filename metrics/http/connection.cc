#include "metrics/http/connection.h"

#include <utility>

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <asio/post.hpp>
#include <asio/write.hpp>

namespace fencepost::metrics {
namespace {

// For a client to read what it was told, and to close.
constexpr std::chrono::milliseconds kGoodbye{1'000};

// Of a request line.
std::string_view PathOf(std::string_view line) {
  const std::size_t from = line.find(' ') + 1;
  return line.substr(from, line.find_first_of(" ?", from) - from);
}

// Made without a pool.
std::string TooMany(std::string_view line) {
  constexpr std::string_view kText = "too many requests at a time\n";
  return fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
      "Content-Length: {}\r\nContent-Security-Policy: default-src 'none'\r\n"
      "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nRetry-After: 1\r\n"
      "Connection: close\r\n\r\n{}",
      kText.size(), line.starts_with("HEAD ") ? "" : kText);
}

}  // namespace

Connection::Connection(Socket socket, Certificates::Context tls, const HttpLimits& limits,
                       Surroundings around)
    : socket_(std::move(socket)),
      context_(std::move(tls)),
      limits_(limits),
      around_(std::move(around)),
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
  if (ended_.exchange(true)) return;
  timer_.cancel();
  std::error_code ignored;
  socket_.close(ignored);
  around_.on_end(this);
}

// Who has begun a request is told that it was too slow.
void Connection::OnLate() {
  if (phase_ != Phase::kSilent) return;  // it came as the time ran out
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
  AnswerPool& pool = Pool();
  if (pool.jobs >= AnswerPool::kMost) return Send(TooMany(request_.line()));
  asio::post(pool.threads, [self = shared_from_this(), asker = WhoAsks(), &pool] {
    if (!self->ended_) self->Answer(asker);
    --pool.jobs;
  });
  ++pool.jobs;  // may be after its end: only this thread compares
  phase_ = Phase::kWaiting;
  timer_.cancel();
}

AnswerPool& Connection::Pool() const {
  const std::string_view path = PathOf(request_.line());
  if (!request_.line().starts_with("POST ") && (path == "/live" || path == "/ready")) {
    return around_.probes;
  }
  // Behind a % there may be any path.
  const bool asks_others = path.starts_with("/fleet") || path.ends_with("/explain") ||
                           path.ends_with("replay") || path.find('%') != path.npos;
  return asks_others ? around_.askers : around_.pages;
}

// On a thread of a pool. Without memory for an answer the connection ends.
void Connection::Answer(const Asker& asker) {
  const auto sockets = socket_.get_executor();
  try {
    asio::post(sockets,
               [self = shared_from_this(), answer = around_.answers.To(request_, asker)]() mutable {
                 self->Send(std::move(answer));
               });
  } catch (...) {
    try {
      asio::post(sockets, [self = shared_from_this()] { self->End(); });
    } catch (...) {  // not even for that: it makes room when the port is full
    }
  }
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
  if (ended_) return;
  phase_ = Phase::kSending;
  answer_ = std::move(answer);
  EndAfter(limits_.answer);
  around_.on_send(this);
  WithStream([this](auto& stream) {
    asio::async_write(stream, asio::buffer(answer_),
                      [self = shared_from_this()](const std::error_code& error, std::size_t) {
                        if (error || self->ended_) return self->End();
                        self->SayGoodbye();
                      });
  });
}

void Connection::SayGoodbye() {
  phase_ = Phase::kSent;
  answer_ = {};
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
