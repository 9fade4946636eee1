// One topic, one table, one pipeline over it and its workers: fed while faults happen, brought to
// its end and audited.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/fault/matrix/audit.h"
#include "tests/fault/matrix/receiver.h"
#include "tests/fault/matrix/system.h"
#include "tests/support/pipeline_servers.h"
#include "tests/support/worker_process.h"

namespace fencepost::matrix {

struct TrialOptions {
  std::string name;  // of the pipeline, its group, topic and database
  std::uint64_t seed = 1;
  int workers = 2;
  bool exec = false;  // the handler is a script, else an HTTP service
  DatabaseKind database = DatabaseKind::kPostgres;
  bool small_disk = false;   // the table is on one
  bool by_position = false;  // and by blocks of offsets: their leases are given back
  bool moves = false;        // partitions are given to other workers while the fault lasts
  int records_a_second = 80;
};

// An order is sent again at most so many orders later.
inline constexpr int kSentAgain = 100;
int OrderIn(const std::string& value);  // its number

class Trial {
 public:
  // The workers run and have done their first records. Throws when that does not come.
  Trial(System& system, TrialOptions options);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Sends what is due. Call it often.
  void Feed();
  // Feeds until it holds; false when that does not come.
  bool FeedUntil(testing::Deadline limit, const std::function<bool()>& condition);

  // No more records. All is done and committed within the limit and the workers end by themselves:
  // "", else what is wrong.
  [[nodiscard]] std::string Finish(testing::Deadline limit);
  // What became of it. After Finish.
  [[nodiscard]] History Collect();
  void DropAll();  // topics and database
  // Just before the handler gives good answers again: History::moved_from.
  void NoteCommitted();

  [[nodiscard]] const TrialOptions& options() const { return options_; }
  [[nodiscard]] testing::WorkerTeam& team() { return team_; }
  [[nodiscard]] Receiver& receiver() { return *receiver_; }
  [[nodiscard]] Database& database() { return database_; }
  [[nodiscard]] testing::EffectsTable& table() { return *table_; }
  [[nodiscard]] const testing::SmallDisk& disk() const { return *disk_; }
  [[nodiscard]] const std::string& dead_topic() const { return dead_topic_; }
  [[nodiscard]] int produced() const { return produced_; }  // records
  [[nodiscard]] int orders() const { return orders_; }      // numbers 0 … orders()-1
  // From now on records go to the further partitions, too.
  void AddPartitions(int more);
  testing::WorkerProcess* WorkerOf(pid_t pid);
  [[nodiscard]] std::vector<pid_t> Pids();
  // It has ended on purpose, or shall: Finish expects no 0 of it.
  void Forgive(const testing::WorkerProcess& worker) { forgiven_.insert(&worker); }

 private:
  [[nodiscard]] std::string Yaml() const;
  void Send();
  void NewProducer();  // which knows the partitions that there are now
  bool Finished();

  System& system_;
  const TrialOptions options_;
  Database& database_;
  const std::string dead_topic_;
  std::mt19937_64 random_;
  testing::TempDir folder_;
  std::unique_ptr<testing::SmallDisk> disk_;
  std::unique_ptr<testing::EffectsTable> table_;
  std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<testing::TestProducer> producer_;
  testing::WorkerTeam team_;
  std::set<const testing::WorkerProcess*> forgiven_;
  std::vector<std::int64_t> committed_;  // as noted
  int partitions_ = 3;
  int orders_ = 0;
  int produced_ = 0;
  std::vector<std::pair<int, int>> recent_;  // order, partition
  std::chrono::steady_clock::time_point next_feed_;
};

}  // namespace fencepost::matrix
