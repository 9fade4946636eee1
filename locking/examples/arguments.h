// What the examples share: `--key value` pairs, and how they reach the lock nodes.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <locking/locking.h>

namespace example {

using namespace fencepost::locking;

class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
  }
  [[nodiscard]] std::string Get(const std::string& key, const std::string& otherwise = "") const {
    const auto at = values_.find("--" + key);
    if (at != values_.end()) return at->second;
    if (!otherwise.empty()) return otherwise;
    std::fprintf(stderr, "--%s is missing; give it a value\n", key.c_str());
    std::exit(2);
  }
  [[nodiscard]] int Number(const std::string& key, int otherwise) const {
    return std::atoi(Get(key, std::to_string(otherwise)).c_str());
  }

 private:
  std::map<std::string, std::string> values_;
};

// The lock over --redis A,B,C, with leases of --ttl-ms; ends the program when there is none.
inline std::unique_ptr<QuorumLock> ConnectOrExit(const Arguments& arguments,
                                                 const std::string& name_space) {
  QuorumLock::Options options;
  std::istringstream list(arguments.Get("redis"));
  for (std::string node; std::getline(list, node, ',');) options.redis.nodes.push_back(node);
  options.lock.ttl = Millis(arguments.Number("ttl-ms", 10'000));
  options.lock.min_validity = options.lock.ttl / 5;
  options.name_space = name_space;
  auto lock = QuorumLock::Connect(options);
  if (!lock) {
    std::fprintf(stderr, "%s\n", lock.error().Line().c_str());
    std::exit(2);
  }
  if (auto ready = (*lock)->WaitReady(Millis(60'000)); !ready) {
    std::fprintf(stderr, "%s\n", ready.error().Line().c_str());
    std::exit(69);
  }
  return std::move(*lock);
}

// One line, appended atomically, whatever other processes append.
inline bool AppendLine(const std::string& path, const std::string& line) {
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return false;
  const bool written = std::fputs((line + "\n").c_str(), file) >= 0;
  return std::fclose(file) == 0 && written;
}

}  // namespace example
