#include "metrics/http/http_server.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <list>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>

#include "metrics/http/answers.h"
#include "metrics/http/connection.h"

namespace fencepost::metrics {
namespace {

using asio::ip::tcp;

constexpr std::size_t kAnsweringThreads = 4;
constexpr std::size_t kProbeThreads = 1, kAskingThreads = 2;
// Of all answers that are being sent.
constexpr std::size_t kMostBytes = 32UL << 20;
constexpr std::chrono::milliseconds kAcceptAgain{100};

struct Address {
  std::string host;  // without the brackets of IPv6; empty: all addresses
  std::string port;
};

std::optional<Address> ParseAddress(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number < 0 || number > 65535) {
    return std::nullopt;
  }
  const bool v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (v6) host = host.substr(1, host.size() - 2);
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  const std::string_view letters = v6 ? "0123456789abcdefABCDEF:." : kLetters;
  if (host.find_first_not_of(letters) != std::string_view::npos) return std::nullopt;
  return Address{std::string(host), std::string(port)};
}

// Where it may listen; the first that this machine has counts. IPv4 before IPv6 where a name has
// both, as localhost has; all addresses of both where there is no name.
tl::expected<std::vector<tcp::endpoint>, std::error_code> Resolve(const Address& address) {
  const auto port = static_cast<asio::ip::port_type>(std::stoi(address.port));
  if (address.host.empty()) return {{tcp::endpoint(tcp::v6(), port), {tcp::v4(), port}}};
  asio::io_context io;
  std::error_code error;
  const auto found =
      tcp::resolver(io).resolve(address.host, address.port, tcp::resolver::passive, error);
  if (error) return tl::unexpected(error);
  std::vector<tcp::endpoint> endpoints(found.begin(), found.end());
  std::ranges::stable_partition(endpoints,
                                [](const tcp::endpoint& one) { return one.address().is_v4(); });
  return endpoints;
}

// [::] is all addresses of IPv4, too.
std::error_code Listen(tcp::acceptor& acceptor, const tcp::endpoint& at) {
  std::error_code error;
  const auto each = [&error](auto&& step) {
    if (!error) step();
  };
  acceptor.open(at.protocol(), error);
  each([&] { acceptor.set_option(tcp::acceptor::reuse_address(true), error); });
  if (at.protocol() == tcp::v6()) {
    each([&] { acceptor.set_option(asio::ip::v6_only(false), error); });
  }
  each([&] { acceptor.bind(at, error); });
  each([&] { acceptor.listen(tcp::acceptor::max_listen_connections, error); });
  if (error) {
    std::error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

// Another process at the first address must not send this one to the next, where nobody looks.
bool IsNotHere(const std::error_code& error) {
  return error == std::errc::address_not_available ||
         error == std::errc::address_family_not_supported;
}

asio::ip::address Unmapped(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

Error CannotListen(const std::string& address, const std::string& why) {
  return {"http_bind", fmt::format("the HTTP server cannot listen: {}", why), address,
          "choose another address with --http or observe.http; port 0 takes a free one"};
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(HttpLimits most) : limits(most) {}

  // What one connection throws, as for want of memory, ends neither the others nor the accepting.
  void Run() {
    for (;;) {
      try {
        if (!accepting && acceptor.is_open()) Accept();
        io.run();
        return;
      } catch (const std::exception& error) {
        NoteFailure(error.what());
      }
    }
  }

  void NoteFailure(std::string_view why) {
    if (std::exchange(failed, true)) return;
    try {
      note(locking::Severity::kWarn, "http_connection_failed",
           fmt::format("a connection of the HTTP port failed: {}; others are not noted", why));
    } catch (const std::exception&) {  // nor is there memory for a note
    }
  }

  void Accept() {
    acceptor.async_accept([this](const std::error_code& error, tcp::socket socket) {
      accepting = false;
      if (!acceptor.is_open()) return;
      if (!error) {
        try {
          Admit(std::move(socket));
        } catch (const std::exception& failure) {
          NoteFailure(failure.what());
        }
        return Accept();
      }
      // No descriptor is left: others of the process may give some back, and so does one of ours.
      EndOne();
      again.expires_after(kAcceptAgain);
      again.async_wait([this](const std::error_code& stopped) {
        accepting = false;
        if (!stopped) Accept();
      });
      accepting = true;
    });
    accepting = true;
  }

  void Admit(tcp::socket socket) {
    if (connections.size() >= limits.connections) EndOne();
    const auto connection = std::make_shared<Connection>(
        std::move(socket), certificates ? certificates->Current() : nullptr, limits,
        Connection::Surroundings{*answers, pages, probes, askers,
                                 [this](const Connection* sending) { MakeRoomFor(sending); },
                                 [this](const Connection* ended) {
                                   connections.remove_if(
                                       [ended](const auto& one) { return one.get() == ended; });
                                 }});
    connections.push_back(connection);
    try {
      connection->Start();
    } catch (...) {
      connection->End();
      throw;
    }
  }

  using Phase = Connection::Phase;

  // Null: none.
  [[nodiscard]] std::shared_ptr<Connection> Oldest(Phase phase) const {
    const auto one =
        std::ranges::find_if(connections, [&](auto& c) { return c->phase() == phase; });
    return one == connections.end() ? nullptr : *one;
  }

  // Who is done goes first. Those who let their answers lie have half of the places; then who says
  // nothing goes, so that who asks at once is answered.
  void EndOne() {
    const auto sending = static_cast<std::size_t>(std::ranges::count_if(
        connections, [](auto& one) { return one->phase() == Phase::kSending; }));
    std::shared_ptr<Connection> one = Oldest(Phase::kSent);
    if (!one && sending > limits.connections / 2) one = Oldest(Phase::kSending);
    for (const Phase phase : {Phase::kSilent, Phase::kSending, Phase::kWaiting}) {
      if (!one) one = Oldest(phase);
    }
    if (one) one->End();
  }

  // The answers of all together take kMostBytes; one that is larger is sent alone.
  void MakeRoomFor(const Connection* newest) {
    std::size_t bytes = 0;
    for (const auto& one : connections) bytes += one->answer_size();
    for (auto at = connections.begin(); at != connections.end() && bytes > kMostBytes;) {
      const std::shared_ptr<Connection> one = *at++;  // its end takes it out of the list
      if (one.get() == newest || one->phase() != Phase::kSending) continue;
      bytes -= one->answer_size();
      one->End();
    }
  }

  void Stop() {
    again.cancel();
    std::error_code ignored;
    acceptor.close(ignored);
    while (!connections.empty()) std::shared_ptr(connections.front())->End();
  }

  const HttpLimits limits;
  Note note;
  std::optional<Answers> answers;              // of a started server
  std::unique_ptr<Certificates> certificates;  // null: no TLS
  int port = 0;
  std::string bound;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  AnswerPool pages{kAnsweringThreads};
  AnswerPool probes{kProbeThreads};
  AnswerPool askers{kAskingThreads};
  // On the thread of the sockets
  tcp::acceptor acceptor{io};
  asio::steady_timer again{io};
  std::list<std::shared_ptr<Connection>> connections;  // the oldest first
  bool accepting = false;                              // or waiting to accept again
  bool failed = false;                                 // noted once
  std::thread sockets;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

tl::expected<std::unique_ptr<HttpServer>, Error> HttpServer::Start(const std::string& address,
                                                                   Endpoints endpoints,
                                                                   HttpLimits limits) {
  const auto parsed = ParseAddress(address);
  if (!parsed) {
    return tl::unexpected(Error{"http_bad_address", "the HTTP server needs HOST:PORT", address,
                                "as in --http 127.0.0.1:9464; port 0 takes a free one"});
  }
  const auto places = Resolve(*parsed);
  if (!places) return tl::unexpected(CannotListen(address, places.error().message()));
  if (!endpoints.note) endpoints.note = [](auto...) {};
  std::unique_ptr<Certificates> certificates;
  if (!endpoints.tls.certificate.empty()) {
    auto read = Certificates::Read(endpoints.tls, endpoints.auth.open.empty(), endpoints.note);
    if (!read) return tl::unexpected(read.error());
    certificates = std::move(*read);
  }
  try {
    auto impl = std::make_unique<Impl>(limits);
    impl->note = endpoints.note;
    impl->certificates = std::move(certificates);
    std::error_code error;
    for (const tcp::endpoint& place : *places) {
      error = Listen(impl->acceptor, place);
      if (!error || !IsNotHere(error)) break;
    }
    if (error) return tl::unexpected(CannotListen(address, error.message()));
    const tcp::endpoint at = impl->acceptor.local_endpoint();
    impl->port = at.port();
    const bool v6 = at.protocol() == tcp::v6();
    impl->bound = fmt::format("{}{}{}:{}", v6 ? "[" : "", at.address().to_string(), v6 ? "]" : "",
                              impl->port);
    impl->answers.emplace(std::move(endpoints), Unmapped(at.address()).is_loopback(),
                          address.substr(0, address.rfind(':')));
    impl->Accept();
    impl->sockets = std::thread([running = impl.get()] { running->Run(); });
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
  } catch (const std::system_error& error) {
    return tl::unexpected(CannotListen(address, error.what()));
  }
}

HttpServer::~HttpServer() {
  asio::post(impl_->io, [impl = impl_.get()] { impl->Stop(); });
  for (AnswerPool* pool : {&impl_->pages, &impl_->probes, &impl_->askers}) {
    pool->threads.stop();  // what has not begun
    pool->threads.join();
  }
  impl_->work.reset();
  impl_->sockets.join();
}

int HttpServer::port() const { return impl_->port; }

const std::string& HttpServer::bound() const { return impl_->bound; }

}  // namespace fencepost::metrics
