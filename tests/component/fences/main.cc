// The tests, and the holder that they freeze: `holder NODES NAME GO-FILE COMMAND` takes the lock,
// prints its token and the word `held`, waits until GO-FILE is there, and only then runs COMMAND
// with FENCEPOST_TOKEN set, whether it still holds or not: as `fencepost lock exec` does where it
// was frozen between its last look and the command's effect.
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/component/fences/holder.h"

namespace {

using fencepost::locking::QuorumLock;

int Hold(const std::vector<std::string>& words) {
  std::vector<std::string> nodes;
  std::istringstream list(words.at(0));
  for (std::string node; std::getline(list, node, ',');) nodes.push_back(node);
  auto lock = QuorumLock::Connect(fencepost::fences::HolderOptions(nodes));
  if (!lock) return std::fprintf(stderr, "%s\n", lock.error().Line().c_str()), 1;
  const auto lease = (*lock)->Acquire(words.at(1), {.wait = fencepost::fences::kWait});
  if (!lease) return std::fprintf(stderr, "%s\n", lease.error().Line().c_str()), 1;
  const std::string token = std::to_string(lease->token().value());
  std::printf("%s held\n", token.c_str());
  std::fflush(stdout);
  while (!std::filesystem::exists(words.at(2))) (void)poll(nullptr, 0, 5);
  setenv("FENCEPOST_TOKEN", token.c_str(), 1);
  const int status = std::system(words.at(3).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 5 && words[0] == "holder") return Hold({words.begin() + 1, words.end()});
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
