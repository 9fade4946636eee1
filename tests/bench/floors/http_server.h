// A server that answers each HTTP/1.1 request with 200 and its own body, on one thread: what a
// service that costs next to nothing would be. `fencepost_bench serve` is this, in a process of its
// own.
#pragma once

#include <string>

#include "tests/support/process.h"

namespace fencepost::bench {

// Prints "listening on PORT" and serves until the process is killed; does not return.
[[noreturn]] void ServeHttp();

class HttpServerProcess {
 public:
  HttpServerProcess();  // of this program; returns when it listens

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  testing::Process process_;
  std::string url_;
};

}  // namespace fencepost::bench
