// A pipeline by position under workers that are killed, frozen beyond the ttl and moved about, over
// lock nodes that forget, a database that is killed and a topic that is truncated; then the group
// goes back, and the topic is deleted and made again. All from one seed, on real servers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/fault/positions/audit.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::positions {

enum class Database : std::uint8_t { kPostgres, kMysql, kSqlite };

// Those of the program.
struct Servers {
  testing::KafkaBroker& kafka;
  testing::SqlServer& postgres;
  testing::SqlServer& mysql;
};

class Storm {
 public:
  Storm(Servers servers, std::uint64_t seed, int steps);
  ~Storm();
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  // Throws where something does not come; all that is wrong otherwise is in trouble().
  void Run();
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  // What happened, in one line.
  [[nodiscard]] std::string Line() const;
  // What the workers said last.
  [[nodiscard]] std::string Tails() const { return team_ ? team_->Tails() : ""; }

 private:
  class Table;

  int Draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  void Count(const char* what) { ++counts_[what]; }
  void Trouble(const std::string& when, const std::string& what);

  [[nodiscard]] std::string Yaml(const std::string& name) const;
  void StartTeam(int workers);
  void StopTeam();
  testing::WorkerProcess& AnyRunning();

  void Produce(int records);
  void AwaitEffects(int more);
  void AwaitEnd(const char* what);
  void Step();
  void Freeze();
  void Truncate();
  void KillDatabase();
  void SetOffsets(const std::vector<std::int64_t>& offsets);
  void GoBack();
  void Recreate();
  void ExpectExplained();
  void Remedy();
  void Audit(const std::string& when);

  const Servers servers_;
  const std::uint64_t seed_;
  const int steps_;
  std::mt19937_64 random_;
  const Database database_;
  const int partitions_;
  const int workers_;
  std::string topic_;
  std::string pipeline_;  // also the group
  std::string block_;
  std::string order_;
  testing::TempDir folder_;
  testing::RedisServers nodes_;
  std::unique_ptr<Table> table_;
  std::unique_ptr<testing::WorkerTeam> team_;
  Expected expected_;
  std::vector<std::int64_t> ends_;  // by partition, of this log
  int log_ = 0;
  std::map<std::string, int> counts_;
  std::string trouble_;
};

}  // namespace fencepost::positions
