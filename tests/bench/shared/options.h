// What the command line says. What is not given has a default of each measurement's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fencepost::bench {

struct Options {
  std::optional<int> rounds;
  std::optional<double> seconds;        // of one side in one round, where time bounds it
  std::optional<std::int64_t> records;  // of one run
  std::vector<int> in_flight{};
  std::vector<int> workers{};                              // processes
  std::vector<std::string> by{"position", "block", "id"};  // PipelineFile::by
  std::vector<std::string> contact{"quorum", "all"};       // of locks, node-memory
  std::vector<std::string> set{};                          // PATH=VALUE, into the pipeline file
  std::vector<std::int64_t> ledger_rows{0, 100'000, 1'000'000, 4'000'000};
  bool done = false;                  // locks: mark each name done instead of releasing it
  bool fsync = true;                  // PostgreSQL's
  bool floor_only = false;            // the floors alone
  std::vector<std::string> peers{};   // programs that take the options of bench locks
  std::string streams{};              // folder with the jars of Kafka Streams; empty: without it
  std::vector<std::string> curves{};  // of growth
};

// What a measurement is of, with what --set changed.
inline nlohmann::ordered_json Of(const Options& options, nlohmann::ordered_json of) {
  for (const std::string& assignment : options.set) {
    const std::string so_far = of.contains("set") ? of["set"].get<std::string>() + " " : "";
    of["set"] = so_far + assignment;
  }
  return of;
}

}  // namespace fencepost::bench
