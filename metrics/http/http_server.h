// The HTTP port of a process: /metrics, /live, /ready, /status, the status page at /, the page of
// all workers at /fleet (/fleet.json), and the parts of these pages that change. GET and HEAD; POST
// is for control, where that is switched on. One request a connection.
//
// Who may ask:
// - with `tls`, who speaks TLS; with its client_ca, who has a certificate of it
// - with `auth`, who says the token, or name and password: 401 for others, except for what is open
// - on a loopback address, requests for this machine, or for the host of `address`: a name that a
//   page in somebody's browser makes resolve to it (DNS rebinding) is another Host: 403. Elsewhere
//   any Host is taken, as the names of pods and services are not known here; there `auth` keeps
//   such a page out, whose browser has no credentials for that name.
// - control: from this machine, or with its token
//
// Limits: HttpLimits. No client holds a thread. Beyond the most connections one makes room: who has
// its answer; who does not take it, where these are more than half; who has not asked. Beyond 64
// requests that wait for their answers the next gets a 503, and beyond 32 MiB of answers that wait
// to be taken the oldest ends. So those who ask at once are answered in any flood of others.
//
// Threads: one for all sockets, four that call the endpoints' functions, one for /live and /ready,
// which so never wait behind slow pages, and two for what asks others: /fleet, and what is posted
// to a path that ends in /explain or replay. The functions must be thread-safe. An exception of
// theirs becomes a 500.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"
#include "locking/base/error.h"
#include "metrics/http/certificates.h"
#include "metrics/pipeline_metrics.h"

namespace fencepost::metrics {

struct ControlAnswer {
  int status = 200;
  std::string text;  // without an end of line
};

struct Control {
  // kLoopback: from this machine, and neither by a proxy (X-Forwarded-For) nor by a page in a
  // browser (Origin), but for the one of `page`. kToken: Authorization: Bearer TOKEN, which is
  // asked for in place of `auth`.
  consumer::ControlAccess access = consumer::ControlAccess::kOff;
  Secret token{};  // read at every request
  // A POST to this path with this body. 200: carried out; 409: not, or not all of it. Both are
  // noted, with who asked.
  std::function<ControlAnswer(std::string_view path, std::string_view body)> post{};
  // The status page with what posts, in the place of Endpoints::page for who may; empty: none has.
  // With kLoopback it shows that it is this page, of this process, by the header X-Fencepost-Page:
  // `page_token`, which is random, and by an Origin that is the Host.
  std::function<std::string()> page{};
  std::string page_token{};
};

struct Endpoints {
  std::function<std::string()> metrics;       // Prometheus text format
  std::function<std::string()> open_metrics;  // the same, where OpenMetrics is asked for
  std::function<ProbeResult()> live;          // 200 or 503, with the reason
  std::function<ProbeResult()> ready;         // 200 or 503, with the reason
  std::function<std::string()> status;        // a JSON object
  std::function<std::string()> page;          // the status page, HTML
  std::function<std::string()> fragment;      // what changes of it, HTML
  // The page of all workers, its middle, and JSON, which may take seconds; empty: there are none.
  std::function<std::string()> fleet{}, fleet_fragment{}, fleet_json{};
  Control control{};
  consumer::PortTls tls{};
  consumer::PortAuth auth{};
  Note note{};  // on any of the server's threads
};

struct HttpLimits {
  std::size_t connections = 256;
  std::size_t head = 8192;  // bytes of the request line and the headers: else 431
  std::size_t body = 1024;  // bytes: else 413
  // From the connection to its whole request, TLS included: else 408.
  std::chrono::milliseconds request{5'000};
  // Until the client has taken the answer: else the connection ends.
  std::chrono::milliseconds answer{20'000};
};

class HttpServer {
 public:
  // `address` is HOST:PORT, [V6]:PORT or :PORT (all addresses, IPv6 and IPv4); port 0 takes a free
  // one. Returns when the server accepts connections. Errors: http_bad_address; http_bind: it
  // cannot be bound; http_certificate: a file of `tls` cannot be used.
  static tl::expected<std::unique_ptr<HttpServer>, Error> Start(const std::string& address,
                                                                Endpoints endpoints,
                                                                HttpLimits limits = {});
  // Closes all connections; waits for the endpoints' functions that run, and begins no others.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;
  [[nodiscard]] const std::string& bound() const;  // ADDRESS:PORT, as they were taken

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::metrics
