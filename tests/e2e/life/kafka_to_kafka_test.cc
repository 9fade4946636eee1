// Kafka to Kafka under one SIGKILL after the other, while records keep coming.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/e2e/life/audit.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

constexpr int kPartitions = 4;

// Produces until it goes, about 2,500 records a second.
class Traffic {
 public:
  explicit Traffic(Orders& orders) : orders_(orders), thread_([this] { Flow(); }) {}
  ~Traffic() {
    {
      const std::lock_guard guard(mutex_);
      stop_ = true;
    }
    stopped_.notify_one();
    thread_.join();
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

 private:
  void Flow() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      lock.unlock();
      orders_.Produce(250);
      lock.lock();
      stopped_.wait_for(lock, std::chrono::milliseconds(90), [this] { return stop_; });
    }
  }

  Orders& orders_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;  // last
};

class KafkaToKafka : public PipelineTest {
 protected:
  enum class Names { kKept, kNew };  // of the workers that take the places of dead ones
  void OutputsEachPositionOnceAndInOrder(std::string_view transaction_timeout, int kills,
                                         Names names);
  WorkerOptions Options(std::string_view transaction_timeout) {
    const std::string yaml = fmt::format(
        "version: 1\nname: {0}\nguarantee: exactly-once\n"
        "kafka:\n  brokers: [{1}]\n  topics: [{0}]\n"
        "  librdkafka: {{session.timeout.ms: 1500, heartbeat.interval.ms: 300}}\n"
        "record_id: position\n"
        "lock:\n  redis: {{nodes: [{2}]}}\n  ttl: 1s\n  min_validity: 500ms\n  max_skew: 500ms\n"
        "output:\n  kafka:\n    topic: {0}-out\n    transaction_timeout: {3}\n"
        "    headers: {{source_partition: partition, source_offset: offset}}\n",
        name_, Kafka().bootstrap(), Nodes().list(), transaction_timeout);
    return {.files = {folder_.Write("kafka.yaml", yaml)}};
  }
};

// In order of the output topic's one partition.
std::vector<Effect> Outputs(const std::string& bootstrap, const std::string& topic) {
  std::vector<Effect> outputs;
  for (const TestRecord& record : ReadTopic(bootstrap, topic)) {
    outputs.push_back({.position = {std::stoi(record.Header("source_partition").value()),
                                    std::stoll(record.Header("source_offset").value())}});
  }
  return outputs;
}

// Mostly it is the newest worker's turn, as soon as it has committed something itself; every third
// time the other's, at once, while the group still waits for the one before. The victim has a
// transaction open: it holds leases, and those last until the transaction is committed.
void KafkaToKafka::OutputsEachPositionOnceAndInOrder(std::string_view transaction_timeout,
                                                     int kills, Names names) {
  Kafka().CreateTopic(name_, kPartitions);
  Kafka().CreateTopic(name_ + "-out", 1);
  WorkerTeam team(Options(transaction_timeout));
  team.Start(2);
  Orders orders(Kafka().bootstrap(), name_, kPartitions);
  {
    const Traffic traffic(orders);
    for (int kill = 0; kill < kills; ++kill) {
      WorkerProcess* victim = nullptr;
      ASSERT_TRUE(WaitUntil(
          seconds(30),
          [&] {
            const auto running = team.Running();
            victim = kill % 3 == 2 ? running.front() : running.back();
            return victim->Now("fencepost_records_processed_total") > 0 &&
                   victim->Last("fencepost_locks_held") > 0;
          },
          "the victim to have written and to hold leases"))
          << "kill " << kill << "\n"
          << team.Tails();
      victim->Kill();
      team.Add(names == Names::kKept ? victim->name() : fmt::format("new-{}", kill));
    }
  }
  ASSERT_TRUE(AllCommitted()) << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
  const Stream stream(ReadTopic(Kafka().bootstrap(), name_));
  const auto outputs = Outputs(Kafka().bootstrap(), name_ + "-out");
  EXPECT_EQ(OnceForEachPosition(outputs, stream), "");
  EXPECT_EQ(InOrder(outputs, stream, "partition"), "");
  EXPECT_EQ(outputs.size(), static_cast<std::size_t>(orders.produced()));
  EXPECT_EQ(team.Sum("fencepost_invariant_violations_total"), 0);
  if (HasFailure()) ADD_FAILURE() << team.Tails();
}

// Nobody could wait for transactions of dead workers to time out: each is ended by the successor of
// its name.
TEST_F(KafkaToKafka, OutputsEachPositionOnceAndInOrderAcrossTwentyKills) {
  OutputsEachPositionOnceAndInOrder("5m", 20, Names::kKept);
}

// As where a name is the host's and the process's: nobody ends the transactions of the dead but
// their own timeout.
TEST_F(KafkaToKafka, OutputsEachPositionOnceAndInOrderWhereNoWorkerTakesTheNameOfADeadOne) {
  OutputsEachPositionOnceAndInOrder("2s", 8, Names::kNew);
}

}  // namespace
}  // namespace fencepost::testing
