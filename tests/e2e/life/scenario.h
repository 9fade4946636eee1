// One run for many tests: three workers that each run all combinations as pipelines, with a kill
// and a freeze on the way.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/life/combination.h"
#include "tests/support/audit.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {

// The servers of this program.
struct Servers : PipelineTest {
  using PipelineTest::Kafka;
  using PipelineTest::Nodes;
  using PipelineTest::Postgres;
};

std::uint64_t Seed();  // FENCEPOST_SEED, else 1

class Scenario {
 public:
  // Sets all up; throws when that fails.
  Scenario();

  // All of it, until every offset is committed and every worker has ended by itself. Throws when
  // something that is waited for does not come.
  void Run();

  [[nodiscard]] const std::vector<Sent>& StreamOf(const Combination& combination) const {
    return combination.Outside() ? few_ : many_;
  }
  // Effects in the order in which they happened; lines of files that broke off are left out.
  [[nodiscard]] History HistoryOf(const Combination& combination) const;
  [[nodiscard]] int LedgerRows(const Combination& combination) const;
  [[nodiscard]] std::string MissingInCalls() const { return service_->Missing(); }

  // Lives are numbers of processes in their team.
  [[nodiscard]] int lives() const { return static_cast<int>(team_.size()); }
  [[nodiscard]] int killed() const { return killed_; }
  [[nodiscard]] int frozen() const { return frozen_; }
  // A metric of one life, as it was last seen, and of all together.
  [[nodiscard]] double Metric(int life, std::string_view metric, const Combination& combination,
                              MetricsPage::Labels labels = {});
  [[nodiscard]] double Sum(std::string_view metric, const Combination& combination,
                           MetricsPage::Labels labels = {});
  [[nodiscard]] std::string Tails() const { return team_.Tails(); }
  // What the workers complained of in a pipeline, but for the handler's refusals.
  [[nodiscard]] std::string WarningsOf(const Combination& combination);

 private:
  class Held;

  std::vector<std::string> WriteFiles();
  void Feed(int many, int few);
  void FeedUntil(const std::function<bool()>& condition, int many,
                 const std::function<std::string()>& what);
  void AwaitProgress();
  void KillOne();
  void FreezeOne();
  int FindHolder();
  void AwaitCommitted(const Combination& combination);
  void AwaitCounted();
  void Finish();
  [[nodiscard]] std::vector<Effect> Effects(const Combination& combination) const;
  [[nodiscard]] const Receiver& ReceiverOf(const Combination& combination) const {
    return combination.handling == Handling::kHttp ? *service_ : *script_;
  }
  [[nodiscard]] std::string LinesOf(const Combination& combination) const;

  std::mt19937_64 random_;
  TempDir folder_;
  EffectsTable table_;
  const SqliteFiles files_;
  const std::unique_ptr<Receiver> service_ = MakeHttpReceiver();
  const std::unique_ptr<Receiver> script_;
  Orders many_orders_;
  Orders few_orders_;
  WorkerTeam team_;
  int killed_ = -1;
  int frozen_ = -1;
  std::vector<Sent> many_;
  std::vector<Sent> few_;
};

}  // namespace fencepost::testing
