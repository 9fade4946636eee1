#include "tests/bench/store.h"
#include "tests/support/paths.h"

#include <stdexcept>

namespace fencepost::bench {

void ResetStore(testing::RedisServers& servers) {
  for (std::size_t node = 0; node < servers.size(); ++node) servers[node].Command({"FLUSHALL"});
  const auto init = testing::RunToEnd({.argv = {testing::FencepostBinary(), "locks", "init",
                                                "--force", "--redis", servers.list()}});
  if (init.exit_code != 0) throw std::runtime_error("fencepost locks init: " + init.output);
}

std::vector<pid_t> Pids(testing::RedisServers& servers) {
  std::vector<pid_t> pids;
  for (std::size_t node = 0; node < servers.size(); ++node) pids.push_back(servers[node].pid());
  return pids;
}

}  // namespace fencepost::bench
