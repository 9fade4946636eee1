// One connection of the HTTP port: TLS where there is some, one request within its limits, the
// answer, the end. All of it on the thread of the sockets, but for the answer, which the pool
// makes.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <asio/ip/tcp.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>

#include "metrics/http/answers.h"
#include "metrics/http/certificates.h"
#include "metrics/http/http_server.h"
#include "metrics/http/incoming_request.h"

namespace fencepost::metrics {

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = asio::ip::tcp::socket;
  using OnEnd = std::function<void(const Connection* self)>;

  // `tls`: null: none. `answers` and `pool` outlive it. `on_end` is called once, when it has ended.
  Connection(Socket socket, Certificates::Context tls, const HttpLimits& limits,
             const Answers& answers, asio::thread_pool& pool, OnEnd on_end);

  void Start();
  void End();  // at once
  // It has said what it wants, so that it waits for us, or takes the answer.
  [[nodiscard]] bool asked() const { return asked_; }

 private:
  template <typename Do>
  void WithStream(Do what);  // the TLS stream, or the socket
  void Read();
  void OnRead(std::size_t size);
  void OnLate();
  void Send(std::string answer);
  void SayGoodbye();  // so that the client reads the answer before it sees the end
  void Drain();
  void EndAfter(std::chrono::milliseconds limit);
  [[nodiscard]] Asker WhoAsks();

  Socket socket_;
  const Certificates::Context context_;
  std::optional<asio::ssl::stream<Socket&>> tls_;
  const HttpLimits limits_;
  const Answers& answers_;
  asio::thread_pool& pool_;
  OnEnd on_end_;  // empty: it has ended
  asio::steady_timer timer_;
  std::array<char, 4096> buffer_{};
  IncomingRequest request_;
  std::string answer_;
  bool asked_ = false;
};

}  // namespace fencepost::metrics
