// One GET of a worker's own HTTP server, without a proxy. Blocks for `limit` at most.
#pragma once

#include <chrono>
#include <string>

#include <tl/expected.hpp>

namespace fencepost::cli {

struct HttpReply {
  long status = 0;
  std::string body;
};

// Error: curl's words: no answer.
tl::expected<HttpReply, std::string> HttpGet(const std::string& url,
                                             std::chrono::milliseconds limit);

}  // namespace fencepost::cli
