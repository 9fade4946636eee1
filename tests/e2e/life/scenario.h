// One run for many tests: three workers that each run all combinations as pipelines, with a kill
// and a freeze on the way.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/life/audit.h"
#include "tests/e2e/life/calls.h"
#include "tests/e2e/life/combination.h"
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

  [[nodiscard]] const Stream& StreamOf(const Combination& combination) const {
    return combination.Outside() ? *few_ : *many_;
  }
  // In the order in which they happened. Lines of files that broke off are left out.
  [[nodiscard]] std::vector<Effect> Effects(const Combination& combination) const;
  [[nodiscard]] std::vector<Call> Calls(const Combination& combination) const;
  [[nodiscard]] int LedgerRows(const Combination& combination) const;
  [[nodiscard]] std::string MissingInCalls() const { return service_.Missing(); }

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
  void Finish();
  [[nodiscard]] std::string Database(const Combination& combination) const;
  [[nodiscard]] std::string LinesOf(const Combination& combination) const;

  std::mt19937_64 random_;
  TempDir folder_;
  EffectsTable table_;
  HttpService service_;
  ExecScript script_;
  Orders many_orders_;
  Orders few_orders_;
  WorkerTeam team_;
  int killed_ = -1;
  int frozen_ = -1;
  std::unique_ptr<Stream> many_;
  std::unique_ptr<Stream> few_;
};

}  // namespace fencepost::testing
