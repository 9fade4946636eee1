// Each handler with each output, by three workers, one of which is killed and one frozen past its
// leases and its session: what takes effect, how often, in which order, and what handlers' outside
// was asked.
#include <algorithm>
#include <exception>

#include <fmt/format.h>

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
    effects_ = run().Effects(combination());
  }
  static Scenario& run() { return Ran().scenario; }
  [[nodiscard]] static const Combination& combination() { return GetParam(); }
  [[nodiscard]] static const Stream& stream() { return run().StreamOf(combination()); }
  // The killed, the frozen, and those that a busy machine kept from extending their leases or from
  // their group in time.
  [[nodiscard]] static std::set<int> Unlucky() {
    std::set<int> unlucky = {run().killed(), run().frozen()};
    unlucky.merge(With("fencepost_lock_losses_total"));
    unlucky.merge(Stale());
    return unlucky;
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

  std::vector<Effect> effects_;
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
  EXPECT_EQ(Genuine(effects_, stream(), combination().Factor()), "");
  if (combination().ByPosition()) {
    EXPECT_EQ(OnceForEachPosition(effects_, stream()), "");
    EXPECT_EQ(effects_.size(), stream().records());
  } else {
    EXPECT_EQ(OnceForEachOrder(effects_, stream()), "");
    EXPECT_EQ(effects_.size(), stream().orders().size());
    EXPECT_EQ(run().LedgerRows(combination()), static_cast<int>(stream().orders().size()));
    EXPECT_GT(run().Sum("fencepost_dedupe_skips_total", combination()), 0);
    EXPECT_GT(run().Sum("fencepost_lock_takeovers_total", combination()), 0);
  }
  ExpectNoViolation();
  EXPECT_EQ(run().Sum("fencepost_id_conflicts_total", combination()), 0);
}

// The metrics of a killed worker end at its last scrape: what it did after that, its own lines say.
TEST_P(AtLeastOnceOutput, LosesNothingAndCountsWhatItDoubles) {
  EXPECT_EQ(Genuine(effects_, stream(), combination().Factor()), "");
  EXPECT_EQ(NoneLost(effects_, stream()), "");
  std::vector<int> lines(static_cast<std::size_t>(run().lives()));
  for (const Effect& effect : effects_) ++lines.at(static_cast<std::size_t>(effect.life));
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
  const auto unique = stream().orders().size();
  EXPECT_EQ(effects_.size() - unique, counted - static_cast<double>(unique));
  EXPECT_EQ(RepeatedOnlyBy(effects_, Unlucky()), "");
  EXPECT_GT(run().Sum("fencepost_dedupe_skips_total", combination()), 0);
  ExpectNoViolation();
}

// Lines of stdout have an order only within a worker's own.
TEST_P(OrderedOutput, KeepsItsOrderUnderRetriesAKillAFreezeAndRebalances) {
  std::vector<std::vector<Effect>> sequences = {effects_};
  if (combination().target == Target::kStdout) {
    sequences.assign(static_cast<std::size_t>(run().lives()), {});
    for (const Effect& effect : effects_) {
      sequences.at(static_cast<std::size_t>(effect.life)).push_back(effect);
    }
  }
  for (const auto& sequence : sequences) {
    EXPECT_EQ(InOrder(sequence, stream(), combination().order), "");
  }
}

// A record that waits for its retry holds nothing back: later ones of its partition overtake it.
TEST_P(UnorderedOutput, HoldsNothingBackBehindARetry) { EXPECT_GT(Overtaken(effects_), 0); }

TEST_P(OutsideHandler, IsCalledForEveryRecordAndEachFurtherCallIsExplained) {
  const std::vector<Call> calls = run().Calls(combination());
  EXPECT_EQ(run().MissingInCalls(), "");
  EXPECT_EQ(Genuine(calls, stream(), combination().ByPosition()), "");
  EXPECT_EQ(EachCalled(calls, stream(), combination().ByPosition()), "");
  EXPECT_EQ(Explained(calls, Unlucky(), Stale()), "") << run().WarningsOf(combination());
  for (int life = 0; life < run().lives(); ++life) {
    const auto refused = std::count_if(calls.begin(), calls.end(), [&](const Call& call) {
      return call.life == life && call.refused;
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
  EXPECT_EQ(Apart(run().Calls(combination()), stream(), combination().order, Unlucky()), "");
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
    if (!combination.AtLeastOnce()) records += Ran().scenario.StreamOf(combination).records();
  }
  EXPECT_GE(records, 100'000U);
}

}  // namespace
}  // namespace fencepost::testing
