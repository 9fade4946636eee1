// The promise of the product, held against crashes, freezes, rebalances, a wiped lock node and a
// deploy, all in one run. The order and the moments of the bad events come from a seed.
#include <cstdlib>
#include <functional>
#include <random>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

constexpr int kRecords = 100'000;
constexpr int kPartitions = 12;
constexpr double kRepeats = 0.05;

std::uint64_t Seed() {
  const char* seed = std::getenv("FENCEPOST_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

class ExactlyOnce : public PipelineTest {
 protected:
  ExactlyOnce()
      : random_(Seed()),
        text_(Text(kPartitions)),
        team_(Worker(text_)),
        orders_(Kafka().bootstrap(), name_, kPartitions, Seed(), kRepeats) {}

  int Draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  WorkerProcess& AnyRunning() {
    const auto running = team_.Running();
    return *running[static_cast<std::size_t>(Draw(static_cast<int>(running.size())))];
  }
  double Processed() {
    team_.Look();
    return team_.Sum("fencepost_records_processed_total");
  }
  ::testing::AssertionResult EffectsGrowBeyond(int rows) {
    return WaitUntil(seconds(60), fmt::format("more than {} effects", rows),
                     [&] { return table_->Count() > rows; });
  }

  void KillOne();
  void FreezeOne();
  void AddOne();
  void WipeANode();
  void RollThemAll();
  void ExpectTheTruth();

  std::mt19937_64 random_;
  PipelineText text_;
  WorkerTeam team_;
  Orders orders_;
  int wiped_ = -1;
};

void ExactlyOnce::KillOne() {
  WorkerProcess& victim = AnyRunning();
  victim.Look();
  victim.Kill();
  team_.Add();
}

// Longer than the lease and the session, so that others take its records over. The table is locked
// while it is chosen and stopped, so that it holds leases; the lock is gone before any of them
// ends.
void ExactlyOnce::FreezeOne() {
  team_.Look();
  const double before = team_.Sum("fencepost_lock_takeovers_total");
  WorkerProcess* frozen = nullptr;
  {
    const TableLock lock(*table_);
    orders_.Produce(2000);
    ASSERT_TRUE(WaitUntil(seconds(30), "a worker that holds more than 100 leases", [&] {
      for (WorkerProcess* worker : team_.Running()) {
        if (worker->Now("fencepost_locks_held") > 100) frozen = worker;
      }
      return frozen != nullptr;
    }));
    frozen->Pause();
  }
  EXPECT_TRUE(WaitUntil(seconds(40), "others to take over what the frozen worker had leased", [&] {
    team_.Look();
    return team_.Sum("fencepost_lock_takeovers_total") > before;
  }));
  frozen->Resume();
  EXPECT_TRUE(
      WaitUntil(seconds(40), "the thawed worker to come back", [&] { return frozen->Ready(); }));
}

void ExactlyOnce::AddOne() {
  WorkerProcess& more = team_.Add();
  EXPECT_TRUE(WaitUntil(seconds(40), "the further worker to get partitions",
                        [&] { return more.Now("fencepost_partitions_assigned") > 0; }));
}

// It comes back empty, under quarantine, and the other four carry on meanwhile.
void ExactlyOnce::WipeANode() {
  wiped_ = Draw(5);
  const std::string letter(1, static_cast<char>('a' + wiped_));
  Nodes()[static_cast<std::size_t>(wiped_)].Restart(RedisServer::Data::kWipe);
  WorkerProcess& witness = AnyRunning();
  EXPECT_TRUE(WaitUntil(seconds(20), "the wiped node to be quarantined", [&] {
    return witness.Now("fencepost_redis_node_quarantined", {{"node", letter}}) == 1;
  }));
  const int rows = table_->Count();
  orders_.Produce(1000);
  EXPECT_TRUE(EffectsGrowBeyond(rows));
}

// A deploy: each worker is replaced by a new one after it has drained.
void ExactlyOnce::RollThemAll() {
  for (WorkerProcess* worker : team_.Running()) {
    team_.Add();
    EXPECT_EQ(worker->Stop(seconds(40)), 0) << worker->Log();
  }
}

void ExactlyOnce::ExpectTheTruth() {
  EXPECT_EQ(orders_.produced(), kRecords);
  EXPECT_EQ(table_->Value("SELECT count(*) FROM effects"), std::to_string(orders_.unique()));
  EXPECT_EQ(table_->Audit(name_, orders_.unique()), "");
  EXPECT_TRUE(CommittedToTheEnd(Kafka(), name_, name_));
  EXPECT_EQ(team_.Sum("fencepost_invariant_violations_total"), 0);
  EXPECT_EQ(team_.Sum("fencepost_id_conflicts_total"), 0);
  EXPECT_GT(team_.Sum("fencepost_lock_takeovers_total"), 0);
  EXPECT_GE(team_.Sum("fencepost_dedupe_skips_total"), kRecords * kRepeats / 2);
}

TEST_F(ExactlyOnce, HoldsThroughKillsFreezesRebalancesAWipedNodeAndADeploy) {
  SCOPED_TRACE(fmt::format("FENCEPOST_SEED={}", Seed()));
  team_.Start(3);
  std::vector<std::function<void()>> events = {[this] { KillOne(); }, [this] { FreezeOne(); },
                                               [this] { AddOne(); },  [this] { WipeANode(); },
                                               [this] { KillOne(); }, [this] { RollThemAll(); }};
  std::shuffle(events.begin(), events.end(), random_);
  for (const auto& event : events) {
    const int rows = std::max(0, table_->Count());
    orders_.Produce(12'000);
    ASSERT_TRUE(EffectsGrowBeyond(rows + Draw(8000))) << team_.Tails();
    event();
    ASSERT_FALSE(HasFailure()) << team_.Tails();
  }
  orders_.Produce(kRecords - orders_.produced());
  ASSERT_TRUE(WaitUntil(seconds(120), "all offsets to be committed", [&] {
    return CommittedToTheEnd(Kafka(), name_, name_);
  })) << team_.Tails();
  EXPECT_TRUE(WaitUntil(seconds(20), "the lag to be 0", [&] {
    team_.Look();
    double lag = 0;
    for (WorkerProcess* worker : team_.Running())
      lag += worker->Last("fencepost_consumer_lag_records");
    return lag == 0;
  }));
  const std::string letter(1, static_cast<char>('a' + wiped_));
  EXPECT_TRUE(WaitUntil(seconds(20), "the wiped node's quarantine to end", [&] {
    auto* witness = team_.Running().front();
    return witness->Now("fencepost_redis_node_quarantined", {{"node", letter}}) == 0;
  }));
  EXPECT_EQ(team_.StopAll(), "");
  ExpectTheTruth();
  if (HasFailure()) ADD_FAILURE() << team_.Tails();
}

}  // namespace
}  // namespace fencepost::testing
