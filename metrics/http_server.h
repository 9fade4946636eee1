// The HTTP server of a process: /metrics, /live, /ready, /status, the status page at /, and what
// keeps it live, /events. GET and HEAD only. No TLS and no authentication: bind it to an address
// that only Prometheus, the kubelet and the people on duty reach.
//
// Threads: civetweb's own, two for requests and one for each of at most kMaxStreams listeners to
// /events (one more gets a 503); the endpoints' functions are called on these and must be
// thread-safe. An exception of theirs becomes a 500, or the end of the stream.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "locking/error.h"
#include "metrics/pipeline_metrics.h"

namespace fencepost::metrics {

struct Endpoints {
  std::function<std::string()> metrics;  // Prometheus text format
  std::function<Readiness()> live;       // 200 or 503 with the reason
  std::function<Readiness()> ready;      // 200 or 503 with the reason
  std::function<std::string()> status;   // a JSON object
  std::function<std::string()> page;     // the status page, HTML
  std::function<std::string()> event;    // one server-sent event, asked for once a second
};

class HttpServer {
 public:
  static constexpr int kMaxStreams = 8;

  // `address` is HOST:PORT, [V6]:PORT or :PORT (all addresses); port 0 takes a free one. Returns
  // when the server accepts connections. A client that stands still (in the middle of its request,
  // or without reading its answer) is dropped after a few times `patience`. Error: the address is
  // malformed or cannot be bound.
  static tl::expected<std::unique_ptr<HttpServer>, Error> Start(
      const std::string& address, Endpoints endpoints,
      std::chrono::milliseconds patience = std::chrono::seconds(5));
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
