// The least that calling an HTTP service for each record costs: libcurl's multi interface on one
// thread, with as many requests out as it may have, bodies that are there already, and nothing
// else.
#pragma once

#include <cstdint>
#include <string>

namespace fencepost::bench {

struct HttpFloor {
  std::string url;
  int concurrency = 0;
  std::int64_t records = 0;
  std::size_t bytes = 0;  // of a body
};

// Returns when each has its answer. Throws unless all are 200 with the body that was sent.
void RunHttpFloor(const HttpFloor& floor);

}  // namespace fencepost::bench
