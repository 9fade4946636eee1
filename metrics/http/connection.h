// One connection of the HTTP port: TLS where there is some, one request within its limits, the
// answer, the end. All of it on the thread of the sockets, but for the answer, which the pool
// makes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
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

// Threads that make answers, for a bounded number of requests. Outlives the connections.
struct AnswerPool {
  explicit AnswerPool(std::size_t count) : threads(count) {}
  // Requests it has taken and not done with; more are refused, with a 503.
  static constexpr std::size_t kMost = 64;
  std::atomic<std::size_t> jobs{0};
  asio::thread_pool threads;
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = asio::ip::tcp::socket;
  using On = std::function<void(const Connection* self)>;
  // Of its life; kWaiting: for its answer. kSent: the client has it, or will have.
  enum class Phase { kSilent, kWaiting, kSending, kSent };
  // What makes its answer, and who is told. `probes` are for /live and /ready, which do not wait
  // behind the pages, which do not wait behind those that ask other workers. `on_send`: the answer
  // begins to be sent. `on_end`: called once, at its end.
  struct Surroundings {
    const Answers& answers;
    AnswerPool& pages;
    AnswerPool& probes;
    AnswerPool& askers;
    On on_send;
    On on_end;
  };

  // `tls`: null: none.
  Connection(Socket socket, Certificates::Context tls, const HttpLimits& limits,
             Surroundings around);

  void Start();
  void End();  // at once
  [[nodiscard]] Phase phase() const { return phase_; }
  // Bytes of an answer that is being sent.
  [[nodiscard]] std::size_t answer_size() const { return answer_.size(); }

 private:
  template <typename Do>
  void WithStream(Do what);  // the TLS stream, or the socket
  void Read();
  void OnRead(std::size_t size);
  void OnLate();
  [[nodiscard]] AnswerPool& Pool() const;
  void Answer(const Asker& asker);
  void Send(std::string answer);
  void SayGoodbye();  // so that the client reads the answer before it sees the end
  void Drain();
  void EndAfter(std::chrono::milliseconds limit);
  [[nodiscard]] Asker WhoAsks();

  Socket socket_;
  const Certificates::Context context_;
  std::optional<asio::ssl::stream<Socket&>> tls_;
  const HttpLimits limits_;
  const Surroundings around_;
  std::atomic<bool> ended_{false};
  asio::steady_timer timer_;
  std::array<char, 4096> buffer_{};
  IncomingRequest request_;
  std::string answer_;
  Phase phase_ = Phase::kSilent;
};

}  // namespace fencepost::metrics
