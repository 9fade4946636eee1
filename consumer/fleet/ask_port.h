// GETs of workers' own HTTP ports, without a proxy. Any thread.
//
// With TLS the certificate that the file names is the only one that is trusted, whatever host it is
// for, and not others of its CA: the requests have the file's credentials.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct PortReply {
  long status = 0;
  std::string body;
};
// Error: no answer, and why: curl's words, or what is missing here.
using PortAnswer = tl::expected<PortReply, std::string>;

// Where a server that listens on HOST:PORT is reached from this machine; empty without a port.
std::string FromHere(const std::string& address);

// https://AT/PATH where the port has TLS.
std::string PortUrl(const ObserveOptions& port, const std::string& at, const std::string& path);

// Whether those who ask the port send a secret.
bool HasCredentials(const ObserveOptions& port);

// `port`: what the worker's file says of who may ask. Blocks for `limit` at most; an answer has at
// most 16 MiB.
PortAnswer AskPort(const ObserveOptions& port, const std::string& url,
                   std::chrono::milliseconds limit);

// All at once, on the caller's thread; blocks for `limit` at most. `on_answer` is called with the
// index of each URL once, in the order of the answers. An answer has at most 4 MiB, and those that
// come in at a time 16 MiB together: one beyond is none.
using OnPortAnswer = std::function<void(std::size_t, PortAnswer)>;
void AskPorts(const ObserveOptions& port, const std::vector<std::string>& urls,
              std::chrono::milliseconds limit, const OnPortAnswer& on_answer);

}  // namespace fencepost::consumer
