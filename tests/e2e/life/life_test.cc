// Each handler with each output, by three workers, one of which is killed and one frozen past its
// leases and its session: what takes effect, how often, in which order, and what handlers' outside
// was asked.
#include <algorithm>
#include <exception>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/e2e/life/scenario.h"

namespace fencepost::testing {
namespace {

constexpr const char* kProcessed = "fencepost_records_processed_total";

struct Outcome {
  Scenario scenario;
  std::string trouble;  // why it did not come to its end
};

// All tests look at one run.
Outcome& Ran() {
  static const auto outcome = [] {
    auto ran = std::make_unique<Outcome>();
    try {
      ran->scenario.Run();
    } catch (const std::exception& error) {
      ran->trouble = fmt::format("{}\n{}", error.what(), ran->scenario.Tails());
    }
    return ran;
  }();
  return *outcome;
}

class Life : public ::testing::TestWithParam<Combination> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Ran().trouble.empty())
        << std::exchange(Ran().trouble, "the run failed, see above") << "FENCEPOST_SEED=" << Seed();
    history_ = run().HistoryOf(combination());
    for (const Sent& sent : history_.sent) orders_.insert(sent.record.order);
  }
  static Scenario& run() { return Ran().scenario; }
  [[nodiscard]] static const Combination& combination() { return GetParam(); }
  // The killed, the frozen, and those that a busy machine kept from extending their leases or from
  // their group in time.
  [[nodiscard]] static std::set<int> Unlucky() {
    std::set<int> unlucky = {run().killed(), run().frozen()};
    unlucky.merge(With("fencepost_lock_losses_total"));
    unlucky.merge(Stale());
    return unlucky;
  }
  // They, and those of whose commands a node took none: a mark is sent, and not awaited.
  [[nodiscard]] static std::set<int> MayHaveLostMarks() {
    std::set<int> lives = Unlucky();
    lives.merge(With("fencepost_redis_command_errors_total"));
    return lives;
  }
  // Those whose partitions were given away before they knew.
  [[nodiscard]] static std::set<int> Stale() {
    return With("fencepost_rebalances_total", {{"event", "lost"}});
  }
  [[nodiscard]] static std::set<int> With(const std::string& metric,
                                          MetricsPage::Labels labels = {}) {
    std::set<int> lives;
    for (int life = 0; life < run().lives(); ++life) {
      if (run().Metric(life, metric, combination(), labels) > 0) lives.insert(life);
    }
    return lives;
  }
  // Who wrote without a ledger after the end of a lease has counted that.
  static void ExpectNoViolation() {
    const auto count = [](MetricsPage::Labels labels) {
      return run().Sum("fencepost_invariant_violations_total", combination(), std::move(labels));
    };
    const double late =
        combination().AtLeastOnce() ? count({{"invariant", "lease_after_loss"}}) : 0;
    EXPECT_EQ(count({}), late) << run().WarningsOf(combination());
    EXPECT_LE(late, run().Sum("fencepost_lock_losses_total", combination()));
  }

  History history_;
  std::set<int> orders_;
};

class ExactlyOnceOutput : public Life {};
class AtLeastOnceOutput : public Life {};
class OrderedOutput : public Life {};
class UnorderedOutput : public Life {};
class OutsideHandler : public Life {};
class ChainedHandler : public Life {};

std::vector<Combination> Those(const std::function<bool(const Combination&)>& which) {
  std::vector<Combination> those;
  std::copy_if(AllCombinations().begin(), AllCombinations().end(), std::back_inserter(those),
               which);
  return those;
}

std::string NameOf(const ::testing::TestParamInfo<Combination>& info) {
  std::string name = info.param.Name();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

TEST_P(ExactlyOnceOutput, LosesNothingAndDoublesNothing) {
  EXPECT_EQ(Audit(history_).Genuine(combination().Factor()).Once().text(), "");
  if (!combination().ByPosition()) {
    EXPECT_EQ(run().LedgerRows(combination()), static_cast<int>(orders_.size()));
    EXPECT_GT(run().Sum("fencepost_dedupe_skips_total", combination()), 0);
  }
  ExpectNoViolation();
  EXPECT_EQ(run().Sum("fencepost_id_conflicts_total", combination()), 0);
}

// The metrics of a killed worker end at its last scrape: what it did after that, its own lines say.
TEST_P(AtLeastOnceOutput, LosesNothingAndCountsWhatItDoubles) {
  Audit audit(history_);
  const std::set<int> may = MayHaveLostMarks();
  EXPECT_EQ(audit.Genuine(combination().Factor()).NoneLost().RepeatedOnlyBy(may).text(), "")
      << fmt::format("all but {}\n", fmt::join(may, ", ")) << run().WarningsOf(combination());
  std::vector<int> lines(static_cast<std::size_t>(run().lives()));
  for (const Effect& effect : history_.effects) ++lines.at(static_cast<std::size_t>(effect.life));
  double counted = 0;
  for (int life = 0; life < run().lives(); ++life) {
    const int own = lines[static_cast<std::size_t>(life)];
    const double done = run().Metric(life, kProcessed, combination(), {{"result", "done"}});
    if (life == run().killed()) {
      EXPECT_LE(done, own);
      counted += own;
    } else {
      EXPECT_EQ(done, own) << "life " << life;
      counted += done;
    }
  }
  EXPECT_EQ(static_cast<double>(history_.effects.size()), counted);
  EXPECT_GT(run().Sum("fencepost_dedupe_skips_total", combination()), 0);
  ExpectNoViolation();
}

// Lines of stdout have an order only within a worker's own; and what two have written may be the
// later one's repeat, which comes at any time.
TEST_P(OrderedOutput, KeepsItsOrderUnderRetriesAKillAFreezeAndRebalances) {
  const bool apart = combination().target == Target::kStdout;
  std::map<int, std::set<int>> lives;  // by order
  for (const Effect& effect : history_.effects) lives[effect.record.order].insert(effect.life);
  for (int life = 0; life < (apart ? run().lives() : 1); ++life) {
    History own = history_;
    if (apart) {
      std::erase_if(own.effects, [&](const Effect& one) {
        return lives[one.record.order] != std::set<int>{life};
      });
    }
    EXPECT_EQ(Audit(own).InOrder().text(), "") << run().WarningsOf(combination());
  }
}

// A record that waits for its retry holds nothing back: later ones of its partition overtake it.
TEST_P(UnorderedOutput, HoldsNothingBackBehindARetry) { EXPECT_GT(Audit(history_).Overtaken(), 0); }

TEST_P(OutsideHandler, IsCalledForEveryRecordAndEachFurtherCallIsExplained) {
  const std::vector<Call>& calls = history_.calls;
  EXPECT_EQ(run().MissingInCalls(), "");
  Audit audit(history_);
  // Without a ledger another record with the id is known by its mark.
  const std::set<int> may = combination().AtLeastOnce() ? MayHaveLostMarks() : Unlucky();
  EXPECT_EQ(audit.CallsAreGenuine().EachCalled().CallsExplained(may, Stale()).text(), "")
      << run().WarningsOf(combination());
  for (int life = 0; life < run().lives(); ++life) {
    const auto refused = std::count_if(calls.begin(), calls.end(), [&](const Call& call) {
      return call.life == life && !call.accepted;
    });
    const double retries =
        run().Metric(life, "fencepost_retries_total", combination(), {{"stage", "handler"}});
    if (Unlucky().contains(life)) {
      EXPECT_LE(retries, refused) << "life " << life;
    } else {
      EXPECT_EQ(retries, refused) << "life " << life;
      EXPECT_GT(refused, 0) << "life " << life;
    }
  }
}

TEST_P(ChainedHandler, HasOneCallOfAChainAtATime) {
  EXPECT_EQ(Audit(history_).CallsApart(Unlucky()).text(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Life, ExactlyOnceOutput,
    ::testing::ValuesIn(Those([](const Combination& c) { return !c.AtLeastOnce(); })), NameOf);
INSTANTIATE_TEST_SUITE_P(
    Life, AtLeastOnceOutput,
    ::testing::ValuesIn(Those([](const Combination& c) { return c.AtLeastOnce(); })), NameOf);
INSTANTIATE_TEST_SUITE_P(Life, OrderedOutput, ::testing::ValuesIn(Those([](const Combination& c) {
                           return c.order != "none";
                         })),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Life, UnorderedOutput, ::testing::ValuesIn(Those([](const Combination& c) {
                           return c.order == "none" && c.Outside();
                         })),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Life, OutsideHandler, ::testing::ValuesIn(Those([](const Combination& c) {
                           return c.Outside();
                         })),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(Life, ChainedHandler, ::testing::ValuesIn(Those([](const Combination& c) {
                           return c.order != "none" && c.Outside();
                         })),
                         NameOf);

// Who loses its leases is let off in the audits above: that must not become all there is.
TEST(Leases, AreKeptByMostThatHaveThem) {
  ASSERT_TRUE(Ran().trouble.empty());
  double acquired = 0;
  double lost = 0;
  for (const Combination& combination : AllCombinations()) {
    acquired += Ran().scenario.Sum("fencepost_lock_acquisitions_total", combination,
                                   {{"result", "acquired"}});
    lost += Ran().scenario.Sum("fencepost_lock_losses_total", combination);
  }
  EXPECT_LT(lost, acquired / 5);
}

// With the records of the other programs' exactly-once tests that is more than 200,000.
TEST(ExactlyOnceOutputs, HadMoreThanAHundredThousandRecordsTogether) {
  ASSERT_TRUE(Ran().trouble.empty());
  std::size_t records = 0;
  for (const Combination& combination : AllCombinations()) {
    if (!combination.AtLeastOnce()) records += Ran().scenario.StreamOf(combination).size();
  }
  EXPECT_GE(records, 100'000U);
}

}  // namespace
}  // namespace fencepost::testing
