// One topic, one output, one pipeline over it and its workers: fed while faults happen, brought to
// its end and audited.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fault/matrix/system.h"
#include "tests/support/audit.h"
#include "tests/support/pipeline_servers.h"
#include "tests/support/receiver.h"
#include "tests/support/worker_process.h"

namespace fencepost::matrix {

// What makes a record one of its own, and where it takes effect once.
enum class Pipeline : std::uint8_t {
  kId,        // by a field of its value, in a database
  kPosition,  // by its position, in a database
  kKafka,     // by its position, in another topic
};
inline constexpr std::array kPipelineNames = {"id", "position", "kafka"};
inline constexpr std::string_view NameOf(Pipeline pipeline) {
  return kPipelineNames.at(static_cast<std::size_t>(pipeline));
}
std::optional<Pipeline> PipelineNamed(std::string_view name);

enum class Handler : std::uint8_t { kHttp, kExec, kNone };

struct TrialOptions {
  std::string name;  // of the pipeline, its group, topic and database
  std::uint64_t seed = 1;
  int workers = 2;
  Pipeline pipeline = Pipeline::kId;
  Handler handler = Handler::kHttp;
  bool batches = false;  // its calls have several records
  DatabaseKind database = DatabaseKind::kPostgres;
  std::string order = "key";
  std::string block{};      // empty: the default
  bool small_disk = false;  // the table is on one
  bool moves = false;       // partitions are given to other workers while the fault lasts
  bool new_names = false;   // nobody comes back under the name of one that is gone
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
  // From now on nothing is sent, or what is due is sent again.
  void Hush(bool hushed) { hushed_ = hushed; }

  // No more records. All is done and committed within the limit and the workers end by themselves:
  // "", else what is wrong.
  [[nodiscard]] std::string Finish(testing::Deadline limit);
  // What became of it. After Finish.
  [[nodiscard]] testing::History Collect();
  // All that must hold of it.
  [[nodiscard]] testing::Audit Judge(const testing::History& history) const;
  [[nodiscard]] std::vector<testing::Effect> Effects();
  void DropAll();  // topics and database
  // Just before the handler gives good answers again: History::moved_from.
  void NoteCommitted();
  // Before records are deleted.
  void NoteSent();

  [[nodiscard]] const TrialOptions& options() const { return options_; }
  [[nodiscard]] const std::string& topic() const { return options_.name; }
  [[nodiscard]] const std::string& group() const { return pipeline_; }  // and the pipeline's name
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] testing::WorkerTeam& team() { return team_; }
  [[nodiscard]] testing::Receiver* receiver() { return receiver_.get(); }  // null: no handler
  [[nodiscard]] bool HasDatabase() const { return database_ != nullptr; }
  [[nodiscard]] Database& database() { return *database_; }
  [[nodiscard]] testing::EffectsTable& table() { return *table_; }
  [[nodiscard]] const testing::SmallDisk& disk() const { return *disk_; }
  [[nodiscard]] int produced() const { return produced_; }  // records
  [[nodiscard]] int orders() const { return orders_; }      // numbers 0 … orders()-1
  [[nodiscard]] int partitions() const { return partitions_; }
  // From now on records go to the further partitions, too.
  void AddPartitions(int more);
  // Deletes the topic and makes it again, with so many records.
  void MakeTopicAgain(int records);
  // From now on its effects so far of records of the newest log may be there twice, and it has
  // another name where that is asked for.
  void BeginAgain(bool other_name);
  testing::WorkerProcess* WorkerOf(pid_t pid);
  [[nodiscard]] std::vector<pid_t> Pids();
  // It has ended on purpose, or shall: Finish expects no 0 of it.
  void Forgive(const testing::WorkerProcess& worker) { forgiven_.insert(&worker); }
  [[nodiscard]] bool Finished();  // all is committed

 private:
  [[nodiscard]] std::string Yaml() const;
  [[nodiscard]] std::string OutputYaml() const;
  void Send();
  void NewProducer();  // which knows the partitions that there are now

  System& system_;
  const TrialOptions options_;
  Database* const database_;  // null: the output is a topic
  const std::string dead_topic_;
  const std::string out_topic_;
  std::string pipeline_;
  std::mt19937_64 random_;
  testing::TempDir folder_;
  const std::string file_;
  std::unique_ptr<testing::SmallDisk> disk_;
  std::unique_ptr<testing::EffectsTable> table_;
  std::unique_ptr<testing::Receiver> receiver_;
  std::unique_ptr<testing::TestProducer> producer_;
  testing::WorkerTeam team_;
  std::set<const testing::WorkerProcess*> forgiven_;
  std::vector<std::int64_t> committed_;  // as noted
  int partitions_ = 3;
  int orders_ = 0;
  int produced_ = 0;
  bool hushed_ = false;
  std::vector<std::pair<int, int>> recent_;  // order, partition
  int log_ = 0;
  std::map<std::pair<int, testing::Place>, testing::Sent> sent_;  // by log; as noted
  std::set<testing::Record> maybe_never_;
  std::set<testing::Record> maybe_twice_;
  std::chrono::steady_clock::time_point next_feed_;
};

}  // namespace fencepost::matrix
