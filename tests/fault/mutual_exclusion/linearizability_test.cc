// The checker of histories refuses what it is there to refuse, and nothing else: journals as
// workers would have written them, each with the verdict that it deserves.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/mutual_exclusion/checker.h"
#include "tests/fault/mutual_exclusion/history.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace fencepost::torture {
namespace {

using ::testing::HasSubstr;
using Kind = Entry::Kind;

// What one worker wrote down, line by line.
class Lines : public std::vector<Entry> {
 public:
  // A lease; and that it is about to be given back.
  Lines Held(std::uint64_t token, std::int64_t asked, std::int64_t at, std::int64_t until) {
    return Add({Kind::kHeld, 0, token, at, until, asked});
  }
  Lines Releasing(std::uint64_t token, std::int64_t at) {
    return Add({Kind::kReleasing, 0, token, at});
  }
  // Requests that were admitted, with what was read or written.
  Lines Read(std::uint64_t token, std::int64_t at, std::int64_t value, std::int64_t took = 10) {
    return Add({Kind::kRead, 0, token, at})
        .Add({Kind::kAdmitted, 0, token, at + took, 0, 0, value});
  }
  Lines Write(std::uint64_t token, std::int64_t at, std::int64_t value) {
    return AskToWrite(token, at, value).Add({Kind::kAdmitted, 0, token, at + 10, 0, 0, value});
  }
  // Reads `value` from `at` on, and raises it.
  Lines Increment(std::uint64_t token, std::int64_t at, std::int64_t value) {
    return Read(token, at, value).Write(token, at + 20, value + 1);
  }
  // A write of which no answer came; and the refusal of what was asked, with the value as it is.
  Lines AskToWrite(std::uint64_t token, std::int64_t at, std::int64_t value) {
    return Add({Kind::kWrite, 0, token, at, 0, 0, value});
  }
  Lines AskToRead(std::uint64_t token, std::int64_t at) { return Add({Kind::kRead, 0, token, at}); }
  Lines Refused(std::uint64_t token, std::int64_t at, std::int64_t value) {
    return Add({Kind::kRefused, 0, token, at, 0, 0, value});
  }

 private:
  Lines Add(const Entry& entry) {
    Lines more = *this;
    more.push_back(entry);
    return more;
  }
};

class Linearizability : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WhyNotChecked().empty()) GTEST_SKIP() << WhyNotChecked();
  }
  void Expect(Verdict verdict, const std::vector<Lines>& journals,
              const std::string& culprit = "") {
    History history;
    for (const Lines& journal : journals) history.Hear(journal);
    history.WriteTo(folder_.File("history"));
    const Checked checked = CheckHistory(folder_.File("history"));
    EXPECT_EQ(checked.verdict, verdict) << checked.text;
    if (!culprit.empty()) {
      EXPECT_THAT(checked.text, HasSubstr(culprit + " 0: NOT linearizable"));
    }
  }
  void ExpectRefused(const std::string& culprit, const std::vector<Lines>& journals) {
    Expect(Verdict::kNotLinearizable, journals, culprit);
  }

 private:
  testing::TempDir folder_;
};

// --- the counter ---------------------------------------------------------------------------------

TEST_F(Linearizability, TakesHoldersInTheOrderOfTheirTokensAndTheRefusalOfALateOne) {
  Expect(Verdict::kLinearizable, {Lines()
                                      .Increment(5, 100, 0)
                                      .Read(5, 200, 1)
                                      .AskToWrite(5, 400, 2)  // thawed late
                                      .Refused(5, 410, 2),
                                  Lines().Increment(6, 300, 1)});
}

TEST_F(Linearizability, TakesOperationsThatOverlapInAnyOrderThatExplainsThem) {
  // The first took effect before the other began to answer.
  Expect(Verdict::kLinearizable, {Lines().Read(5, 100, 0, 800), Lines().Increment(6, 200, 0)});
}

TEST_F(Linearizability, TakesAKilledWorkersWriteAsDoneOrNotDone) {
  for (const std::int64_t found : {0, 1}) {
    Expect(Verdict::kLinearizable,
           {Lines().Read(5, 100, 0).AskToWrite(5, 120, 1), Lines().Increment(6, 200, found)});
  }
}

TEST_F(Linearizability, RefusesAKilledWorkersWriteThatIsSeenLate) {
  ExpectRefused("counter", {Lines().Read(5, 100, 0).AskToWrite(5, 120, 1),
                            Lines().Read(6, 200, 0).Read(6, 300, 1)});
}

TEST_F(Linearizability, RefusesAStaleRead) {
  ExpectRefused("counter", {Lines().Increment(5, 100, 0), Lines().Read(6, 200, 0)});
}

TEST_F(Linearizability, RefusesTwoHoldersOfOneTokenThatRaiseTheSameValue) {
  ExpectRefused("counter", {Lines().Increment(5, 100, 0), Lines().Increment(5, 105, 0)});
}

TEST_F(Linearizability, RefusesAnIncrementThatIsAdmittedAfterANewerToken) {
  ExpectRefused("counter",
                {Lines().Read(5, 100, 0).Write(5, 300, 2), Lines().Increment(6, 200, 0)});
}

TEST_F(Linearizability, RefusesTheRefusalOfTheNewestToken) {
  ExpectRefused("counter",
                {Lines().Increment(6, 100, 0), Lines().AskToRead(7, 200).Refused(7, 210, 1)});
}

// --- the lock ------------------------------------------------------------------------------------

TEST_F(Linearizability, TakesLeasesThatEndByReleaseOrByTimeBeforeTheNextOneIsSeen) {
  Expect(Verdict::kLinearizable, {Lines().Held(5, 100, 150, 700).Releasing(5, 300),
                                  Lines().Held(6, 120, 310, 900), Lines().Held(7, 0, 950, 1500)});
}

TEST_F(Linearizability, TakesTheLeaseOfAKilledWorkerUntilItsEnd) {
  Expect(Verdict::kLinearizable, {Lines().Held(5, 100, 150, 700), Lines().Held(6, 160, 701, 900)});
}

TEST_F(Linearizability, RefusesTwoLeasesThatStandAtOnce) {
  ExpectRefused("lock", {Lines().Held(5, 100, 150, 700), Lines().Held(6, 200, 250, 900)});
}

TEST_F(Linearizability, RefusesALeaseThatIsSeenBeforeTheReleaseOfTheOneBeforeBegan) {
  ExpectRefused("lock",
                {Lines().Held(5, 100, 150, 700).Releasing(5, 300), Lines().Held(6, 120, 299, 900)});
}

TEST_F(Linearizability, RefusesTokensAgainstTheOrderOfTheLeases) {
  ExpectRefused("lock", {Lines().Held(6, 100, 150, 200), Lines().Held(5, 300, 350, 400)});
}

TEST_F(Linearizability, RefusesTwoHoldersWhoseAdmittedIncrementsOverlap) {
  const std::vector<Lines> journals{Lines().Held(5, 90, 95, 700).Read(5, 100, 0).Write(5, 300, 1),
                                    Lines().Held(6, 96, 99, 800).Increment(6, 105, 0)};
  ExpectRefused("counter", journals);
  ExpectRefused("lock", journals);
}

// --- long histories are cut ----------------------------------------------------------------------

TEST_F(Linearizability, FindsAWrongAnswerFarFromTheBeginning) {
  constexpr std::int64_t kMany = 1000;
  Lines journal;
  for (std::int64_t n = 0; n < kMany; ++n) {
    const std::int64_t at = 100 * (n + 1);
    const auto token = static_cast<std::uint64_t>(n + 5);
    const Lines more = Lines()
                           .Held(token, at - 100, at - 60, at + 90)
                           .Increment(token, at, n)
                           .Releasing(token, at + 35);
    journal.insert(journal.end(), more.begin(), more.end());
  }
  Expect(Verdict::kLinearizable, {journal});
  ExpectRefused("counter", {journal.Read(2000, 1'000'000, kMany - 1)});
  ExpectRefused("lock", {journal.Held(2000, 1'000'000, 1'000'010, 2'000'000)
                             .Held(2001, 1'000'000, 1'500'000, 2'000'000)});
}

// --- getting the program -------------------------------------------------------------------------

// What fetch-linearizability ends with where `go` is a script of ours, or is not there ("").
int EndOfFetching(const std::string& go) {
  const testing::TempDir folder;
  for (const char* tool : {"cat", "cut", "dirname", "flock", "mkdir", "mv", "sha256sum"}) {
    std::filesystem::create_symlink("/usr/bin/" + std::string(tool), folder.File(tool));
  }
  if (!go.empty()) {
    std::filesystem::permissions(folder.Write("go", "#!/bin/sh\n" + go),
                                 std::filesystem::perms::owner_all);
  }
  return testing::RunToEnd(
             {.argv = {testing::SourcePath("tests/support/fetch-linearizability")},
              .env = {{"PATH", folder.path().string()}, {"FENCEPOST_CACHE", folder.File("cache")}}})
      .exit_code;
}

TEST(FetchingTheChecker, EndsWithThreeOnlyWhereThereIsNoGoOrNoNetwork) {
  EXPECT_EQ(EndOfFetching(""), 3);
  const std::string get = R"(echo 'go: porcupine@v1.3.1: Get "https://proxy.golang.org/": )";
  EXPECT_EQ(EndOfFetching(get + "dial tcp: lookup proxy.golang.org: no such host'; exit 1"), 3);
  EXPECT_EQ(EndOfFetching(get + "net/http: TLS handshake timeout'; exit 1"), 3);
  EXPECT_EQ(EndOfFetching(get + "404 Not Found'; exit 1"), 1);
  EXPECT_EQ(EndOfFetching("echo 'verifying module: checksum mismatch: dial tcp'; exit 1"), 1);
  EXPECT_EQ(EndOfFetching("[ $1 = mod ]"), 1);  // its own test fails
}

}  // namespace
}  // namespace fencepost::torture
