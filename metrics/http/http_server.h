// The HTTP server of a process: /metrics, /live, /ready, /status, the status page at /, and
// /fragment, the part of the page that changes. GET and HEAD only, and no authentication: bind it
// to an address that only Prometheus, the kubelet and the people on duty reach; on a loopback
// address requests for other hosts are refused (DNS rebinding). No TLS. POST is for control, where
// that is switched on: from this machine, or with a token.
//
// Threads: civetweb's own, ten. The endpoints' functions are called on these and must be
// thread-safe. An exception of theirs becomes a 500.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"
#include "locking/base/error.h"
#include "metrics/pipeline_metrics.h"

namespace fencepost::metrics {

struct ControlAnswer {
  int status = 200;
  std::string text;  // without an end of line
};

struct Control {
  // kLoopback: from this machine, and neither by a proxy (X-Forwarded-For) nor by a page in a
  // browser (Origin). kToken: Authorization: Bearer TOKEN.
  consumer::ControlAccess access = consumer::ControlAccess::kOff;
  std::string token{};
  // A POST to this path with this body (at most 1 KiB).
  std::function<ControlAnswer(std::string_view path, std::string_view body)> post{};
};

struct Endpoints {
  std::function<std::string()> metrics;       // Prometheus text format
  std::function<std::string()> open_metrics;  // the same, where OpenMetrics is asked for
  std::function<ProbeResult()> live;          // 200 or 503, with the reason
  std::function<ProbeResult()> ready;         // 200 or 503, with the reason
  std::function<std::string()> status;        // a JSON object
  std::function<std::string()> page;          // the status page, HTML
  std::function<std::string()> fragment;      // what changes of it, HTML
  Control control{};
};

// Stalled clients are disconnected: after `io_timeout` without a byte, and a slow reader once a
// response has taken about 4 × `io_timeout`.
struct HttpLimits {
  std::chrono::milliseconds io_timeout{5000};
};

class HttpServer {
 public:
  // `address` is HOST:PORT, [V6]:PORT or :PORT (all addresses); port 0 takes a free one. Returns
  // when the server accepts connections. Error: the address is malformed or cannot be bound.
  static tl::expected<std::unique_ptr<HttpServer>, Error> Start(const std::string& address,
                                                                Endpoints endpoints,
                                                                HttpLimits limits = {});
  ~HttpServer();  // waits for requests under way, two seconds for silent clients
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;
  [[nodiscard]] const std::string& bound() const;  // HOST:PORT, with the port that was taken

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::metrics
