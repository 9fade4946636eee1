// How long a scrape of /metrics takes.
#pragma once

namespace fencepost::bench {

struct ScrapeBench {
  int rounds = 50;
  int partitions = 1000;  // of one pipeline with five lock nodes
};

// The page is built in this process as `run` builds it, and fetched over HTTP from its server.
void RunScrapeBench(const ScrapeBench& options);

}  // namespace fencepost::bench
