#include "metrics/http/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <civetweb.h>
#include <fmt/format.h>
#include <openssl/crypto.h>

#include "metrics/open_metrics.h"
#include "metrics/page.h"
#include "metrics/status/status_page.h"

namespace fencepost::metrics {
namespace {

using consumer::ControlAccess;

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr const char* kHtml = "text/html; charset=utf-8";
// Browsers open connections ahead of need and leave them silent; each holds a thread for a while.
constexpr int kRequestThreads = 10;
constexpr int kIoTimeouts = 4;        // for a whole answer
constexpr std::size_t kChunk = 1024;  // one mg_write

struct Response {
  int status = 200;
  const char* type = kPlain;
  std::string body;
  std::string_view policy = "default-src 'none'";  // Content-Security-Policy
};

struct Address {
  std::string host;  // as written, with the brackets of IPv6; empty: all addresses
  int port = 0;
};

std::optional<Address> ParseAddress(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  Address address{std::string(text.substr(0, colon)), 0};
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  const bool number = error == std::errc() && end == port.data() + port.size();
  if (!number || address.port < 0 || address.port > 65535) return std::nullopt;
  const bool bracketed =
      address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  const std::string_view inside =
      bracketed ? std::string_view(address.host).substr(1, address.host.size() - 2) : address.host;
  // The server library reads `,`, `+`, and letters after the port as further ports and options.
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
  const bool fits = bracketed ? inside.find_first_not_of("0123456789abcdefABCDEF:.") == inside.npos
                              : inside.find_first_not_of(kLetters) == inside.npos;
  if (!fits) return std::nullopt;
  return address;
}

Response State(const ProbeResult& state, std::string_view yes, std::string_view no) {
  if (state.ready) {
    return {200, kPlain,
            fmt::format("{}{}{}\n", yes, state.reason.empty() ? "" : "; ", state.reason)};
  }
  return {503, kPlain, fmt::format("{}: {}\n", no, state.reason)};
}

Response Answer(const Endpoints& endpoints, std::string_view path, std::string_view accept) {
  if (path == "/metrics" && WantsOpenMetrics(accept)) {
    return {200, kOpenMetricsType, endpoints.open_metrics()};
  }
  if (path == "/metrics") return {200, MetricsPage::kContentType, endpoints.metrics()};
  if (path == "/live") return State(endpoints.live(), "live", "not live");
  if (path == "/ready") return State(endpoints.ready(), "ready", "not ready");
  if (path == "/status") return {200, kJson, endpoints.status()};
  if (path == "/") return {200, kHtml, endpoints.page(), StatusPagePolicy()};
  if (path == "/fragment") return {200, kHtml, endpoints.fragment()};
  return {404, kPlain, "not found\n"};
}

Response AnswerOrError(const Endpoints& endpoints, std::string_view path, std::string_view accept) {
  try {
    return Answer(endpoints, path, accept);
  } catch (const std::exception& error) {
    return {500, kPlain, fmt::format("internal error: {}\n", error.what())};
  } catch (...) {
    return {500, kPlain, "internal error\n"};
  }
}

// The library's timeout starts again with every byte that goes, so the chunks are small, and have
// one limit together. False: the client has gone or was too slow, or the server stops.
bool WriteWithin(mg_connection* connection, std::string_view text, std::chrono::milliseconds limit,
                 const std::atomic<bool>& stopping) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!text.empty()) {
    if (stopping || std::chrono::steady_clock::now() >= until) return false;
    const std::string_view chunk = text.substr(0, kChunk);
    if (mg_write(connection, chunk.data(), chunk.size()) != static_cast<int>(chunk.size())) {
      return false;
    }
    text.remove_prefix(chunk.size());
  }
  return true;
}

void Send(mg_connection* connection, const Response& response, bool with_body,
          std::chrono::milliseconds limit, const std::atomic<bool>& stopping) {
  const std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: {}\r\nConnection: close\r\n"
      "{}\r\n",
      response.status, mg_get_response_code_text(connection, response.status), response.type,
      response.body.size(), response.policy, response.status == 405 ? "Allow: GET, HEAD\r\n" : "");
  if (!WriteWithin(connection, head, limit, stopping) || !with_body) return;
  (void)WriteWithin(connection, response.body, limit, stopping);
}

bool SameToken(std::string_view given, std::string_view token) {
  return given.size() == token.size() &&
         CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

std::string_view Header(mg_connection* connection, const char* name) {
  const char* value = mg_get_header(connection, name);
  return value == nullptr ? "" : value;
}

// HOST:PORT, or HOST alone.
bool IsLoopback(std::string_view host) {
  host = host.substr(0, host.ends_with(']') ? host.size() : host.rfind(':'));
  const bool ipv4 =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return ipv4 || host == "localhost" || host == "[::1]";
}

// Why the request may not control anything; empty: it may.
std::string_view Denied(mg_connection* connection, const mg_request_info& request,
                        const Control& control) {
  const auto header = [&](const char* name) { return Header(connection, name); };
  if (control.access == ControlAccess::kToken) {
    constexpr std::string_view kBearer = "Bearer ";
    const std::string_view given = header("Authorization");
    const bool good = !control.token.empty() && given.starts_with(kBearer) &&
                      SameToken(given.substr(kBearer.size()), control.token);
    return good ? "" : "the request needs the header Authorization: Bearer TOKEN";
  }
  const std::string_view from = request.remote_addr;
  // A sidecar hands on what comes from elsewhere from another address of 127.0.0.0/8.
  if (from != "127.0.0.1" && from != "::1") return "only this machine may do that";
  if (!IsLoopback(header("Host"))) {
    return "the request is for another host: a proxy may not do that";
  }
  for (const char* name : {"Origin", "Referer", "Sec-Fetch-Site", "Forwarded", "Via", "X-Real-IP",
                           "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}) {
    if (!header(name).empty()) return "a proxy or a page in a browser may not do that";
  }
  return "";
}

Response AnswerControl(mg_connection* connection, const mg_request_info& request,
                       const Control& control) {
  constexpr long long kLargest = 1024;
  const std::string_view denied = Denied(connection, request, control);
  if (!denied.empty()) return {403, kPlain, fmt::format("forbidden: {}\n", denied)};
  if (request.content_length > kLargest) return {413, kPlain, "the body is too long\n"};
  std::string body(static_cast<std::size_t>(std::max(0LL, request.content_length)), '\0');
  std::size_t got = 0;
  while (got < body.size()) {
    const int n = mg_read(connection, body.data() + got, body.size() - got);
    if (n <= 0) return {400, kPlain, "the body did not come\n"};
    got += static_cast<std::size_t>(n);
  }
  try {
    const ControlAnswer answer = control.post(request.local_uri, body);
    return {answer.status, kPlain, answer.text + "\n"};
  } catch (const std::exception& error) {
    return {500, kPlain, fmt::format("internal error: {}\n", error.what())};
  }
}

// An IPv4 address at which this machine reaches what listens at host:port.
sockaddr_in ReachedAt(const std::string& host, int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  addrinfo hints{};
  hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (!host.empty() && getaddrinfo(host.c_str(), nullptr, &hints, &found) == 0) {
    const in_addr resolved = reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr;
    if (resolved.s_addr != htonl(INADDR_ANY)) at.sin_addr = resolved;
    freeaddrinfo(found);
  }
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  return at;
}

void Knock(const sockaddr_in& at) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  (void)connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
  close(fd);
}

// The library counts its users, but not thread-safely.
std::mutex& LibraryMutex() {
  static std::mutex mutex;
  return mutex;
}

Error CannotListen(const std::string& address, std::string_view why) {
  return {"http_bind", fmt::format("the HTTP server cannot listen: {}", why), address,
          "choose another address with --http or observe.http; port 0 takes a free one"};
}

}  // namespace

struct HttpServer::Impl {
  Endpoints endpoints;
  mg_context* context = nullptr;
  int port = 0;
  std::string bound;
  bool loopback = false;  // it is reached from this machine alone
  const std::thread::id starter = std::this_thread::get_id();
  std::string problem;     // the library's first complaint while it starts
  sockaddr_in knock_at{};  // where a connection reaches the server from this machine
  std::atomic<bool> stopping{false};
  HttpLimits limits;

  static int OnRequest(mg_connection* connection) {
    const mg_request_info* const request = mg_get_request_info(connection);
    auto* const impl = static_cast<Impl*>(request->user_data);
    const std::string_view method = request->request_method;
    const bool head = method == "HEAD";
    Response response{405, kPlain, "method not allowed\n"};
    const Control& control = impl->endpoints.control;
    if (method == "POST" && control.access != ControlAccess::kOff) {
      response = AnswerControl(connection, *request, control);
    }
    if (head || method == "GET") {
      response = AnswerOrError(impl->endpoints, request->local_uri, Header(connection, "Accept"));
    }
    // A page in a browser whose name resolves to this machine.
    const std::string_view host = Header(connection, "Host");
    if (impl->loopback && !host.empty() && !IsLoopback(host)) {
      response = {403, kPlain,
                  "forbidden: this port is bound to this machine, and the request is for another "
                  "host\n"};
    }
    Send(connection, response, !head, kIoTimeouts * impl->limits.io_timeout, impl->stopping);
    return response.status;  // not 0: answered
  }

  // Nothing of it goes to stderr. Its threads complain of clients, which is of no interest.
  static int OnComplaint(const mg_connection* connection, const char* text) {
    auto* const impl = static_cast<Impl*>(mg_get_user_data(mg_get_context(connection)));
    if (impl != nullptr && std::this_thread::get_id() == impl->starter && impl->problem.empty()) {
      impl->problem = text;
    }
    return 1;
  }
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
  if (parsed->host.starts_with('[') && mg_check_feature(MG_FEATURES_IPV6) == 0) {
    return tl::unexpected(Error{"http_no_ipv6", "this build's HTTP library knows no IPv6", address,
                                "choose an IPv4 address with --http or observe.http"});
  }
  auto impl = std::make_unique<Impl>();
  impl->endpoints = std::move(endpoints);
  impl->limits = limits;
  impl->loopback = IsLoopback(address);

  const std::string listen = parsed->host.empty() ? std::to_string(parsed->port) : address;
  const std::string threads = std::to_string(kRequestThreads);
  const std::string limit = std::to_string(limits.io_timeout.count());
  const char* options[] = {"listening_ports",    listen.c_str(), "num_threads", threads.c_str(),
                           "request_timeout_ms", limit.c_str(),  nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = &Impl::OnRequest;
  callbacks.log_message = &Impl::OnComplaint;
  mg_init_data init{};
  init.callbacks = &callbacks;
  init.user_data = impl.get();
  init.configuration_options = options;

  const std::lock_guard lock(LibraryMutex());
  mg_init_library(MG_FEATURES_DEFAULT);
  impl->context = mg_start2(&init, nullptr);
  if (impl->context == nullptr) {
    mg_exit_library();
    return tl::unexpected(
        CannotListen(address, impl->problem.empty() ? "no reason was given" : impl->problem));
  }
  mg_server_port ports[1]{};
  if (mg_get_server_ports(impl->context, 1, ports) == 1) impl->port = ports[0].port;
  impl->knock_at = ReachedAt(parsed->host, impl->port);
  impl->bound = fmt::format("{}:{}", parsed->host.empty() ? "0.0.0.0" : parsed->host, impl->port);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  impl_->stopping = true;
  // The library's accepting thread sees that it shall stop only every two seconds, or when somebody
  // connects: so somebody does.
  std::jthread knocker;
  try {
    knocker = std::jthread([at = impl_->knock_at](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        Knock(at);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  } catch (const std::system_error&) {  // no thread is available: then it takes the two seconds
  }
  mg_stop(impl_->context);
  knocker.request_stop();
  const std::lock_guard lock(LibraryMutex());
  mg_exit_library();
}

int HttpServer::port() const { return impl_->port; }

const std::string& HttpServer::bound() const { return impl_->bound; }

}  // namespace fencepost::metrics
