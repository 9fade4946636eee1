// A handler, an output and an order, and the pipeline file that has them.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tests/support/receiver.h"
#include "tests/support/sqlite_file.h"

namespace fencepost::testing {

enum class Handling { kNone, kHttp, kExec, kJq };
enum class Target { kPostgres, kSqlite, kKafka, kFile, kStdout };

struct Combination {
  Handling handling;
  Target target;
  std::string order;  // partition, key or none; a Kafka output always keeps the partition's

  [[nodiscard]] std::string Name() const;  // of its pipeline, its group, its file, …: http-sqlite
  // What the handler makes of an amount: that many times as much.
  [[nodiscard]] int Factor() const { return static_cast<int>(handling) + 1; }
  [[nodiscard]] bool Outside() const {
    return handling == Handling::kHttp || handling == Handling::kExec;
  }
  [[nodiscard]] bool HasLedger() const {
    return target == Target::kPostgres || target == Target::kSqlite;
  }
  [[nodiscard]] bool AtLeastOnce() const {
    return target == Target::kFile || target == Target::kStdout;
  }
  // A Kafka output promises by position, the others by the order's id.
  [[nodiscard]] bool ByPosition() const { return target == Target::kKafka; }
  // Handlers that do things outside get fewer records.
  [[nodiscard]] std::string Topic() const { return Outside() ? "few" : "many"; }
};
void PrintTo(const Combination& combination, std::ostream* out);

// Each handler with each output, and one with stdout.
const std::vector<Combination>& AllCombinations();

// Where the parts are that the pipelines share.
struct Surroundings {
  std::string brokers;
  std::string nodes;
  std::string dsn;
  const Receiver& service;   // of the HTTP handler
  const Receiver& script;    // of the exec handler
  const SqliteFiles& files;  // databases
  std::string folder;        // for files of lines
};

// The YAML. ${LIFE} in it is the process's number in its team: it comes with each call and stands
// in each effect.
std::string PipelineYaml(const Combination& combination, const Surroundings& around);

}  // namespace fencepost::testing
