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
using Lines = std::vector<Entry>;

Entry Held(std::uint64_t token, std::int64_t asked, std::int64_t at, std::int64_t until) {
  return {Kind::kHeld, 0, token, at, until, asked};
}

Entry Releasing(std::uint64_t token, std::int64_t at) { return {Kind::kReleasing, 0, token, at}; }

// A request that was admitted, and its answer. kRead: what was read; kWrite: what was written.
void Add(Lines& journal, Kind what, std::uint64_t token, std::int64_t from, std::int64_t to,
         std::int64_t value) {
  journal.push_back({what, 0, token, from, 0, 0, what == Kind::kWrite ? value : 0});
  journal.push_back({Kind::kAdmitted, 0, token, to, 0, 0, value});
}

// One that was refused, with the value that was there.
void AddRefused(Lines& journal, Kind what, std::uint64_t token, std::int64_t from, std::int64_t to,
                std::int64_t given, std::int64_t there) {
  journal.push_back({what, 0, token, from, 0, 0, given});
  journal.push_back({Kind::kRefused, 0, token, to, 0, 0, there});
}

// Reads `value` from `at` on, and raises it.
void Increment(Lines& journal, std::uint64_t token, std::int64_t at, std::int64_t value) {
  Add(journal, Kind::kRead, token, at, at + 10, value);
  Add(journal, Kind::kWrite, token, at + 20, at + 30, value + 1);
}

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
  Lines first;
  Increment(first, 5, 100, 0);
  Add(first, Kind::kRead, 5, 200, 210, 1);
  Lines second;
  Increment(second, 6, 300, 1);
  AddRefused(first, Kind::kWrite, 5, 400, 410, 2, 2);  // thawed late
  Expect(Verdict::kLinearizable, {first, second});
}

TEST_F(Linearizability, TakesOperationsThatOverlapInAnyOrderThatExplainsThem) {
  Lines slow;
  Add(slow, Kind::kRead, 5, 100, 900, 0);  // took effect before the other began to answer
  Lines quick;
  Increment(quick, 6, 200, 0);
  Expect(Verdict::kLinearizable, {slow, quick});
}

TEST_F(Linearizability, TakesAKilledWorkersWriteAsDoneOrNotDone) {
  for (const std::int64_t found : {0, 1}) {
    Lines killed;
    Add(killed, Kind::kRead, 5, 100, 110, 0);
    killed.push_back({Kind::kWrite, 0, 5, 120, 0, 0, 1});
    Lines next;
    Increment(next, 6, 200, found);
    Expect(Verdict::kLinearizable, {killed, next});
  }
}

TEST_F(Linearizability, RefusesAKilledWorkersWriteThatIsSeenLate) {
  Lines killed;
  Add(killed, Kind::kRead, 5, 100, 110, 0);
  killed.push_back({Kind::kWrite, 0, 5, 120, 0, 0, 1});
  Lines next;
  Add(next, Kind::kRead, 6, 200, 210, 0);
  Add(next, Kind::kRead, 6, 300, 310, 1);
  ExpectRefused("counter", {killed, next});
}

TEST_F(Linearizability, RefusesAStaleRead) {
  Lines first;
  Increment(first, 5, 100, 0);
  Lines second;
  Add(second, Kind::kRead, 6, 200, 210, 0);
  ExpectRefused("counter", {first, second});
}

TEST_F(Linearizability, RefusesTwoHoldersOfOneTokenThatRaiseTheSameValue) {
  Lines first;
  Increment(first, 5, 100, 0);
  Lines second;
  Increment(second, 5, 105, 0);
  ExpectRefused("counter", {first, second});
}

TEST_F(Linearizability, RefusesAnIncrementThatIsAdmittedAfterANewerToken) {
  Lines first;
  Add(first, Kind::kRead, 5, 100, 110, 0);
  Lines second;
  Increment(second, 6, 200, 0);
  Add(first, Kind::kWrite, 5, 300, 310, 2);
  ExpectRefused("counter", {first, second});
}

TEST_F(Linearizability, RefusesTheRefusalOfTheNewestToken) {
  Lines first;
  Increment(first, 6, 100, 0);
  Lines second;
  AddRefused(second, Kind::kRead, 7, 200, 210, 0, 1);
  ExpectRefused("counter", {first, second});
}

// --- the lock ------------------------------------------------------------------------------------

TEST_F(Linearizability, TakesLeasesThatEndByReleaseOrByTimeBeforeTheNextOneIsSeen) {
  Expect(Verdict::kLinearizable, {{Held(5, 100, 150, 700), Releasing(5, 300)},
                                  {Held(6, 120, 310, 900)},
                                  {Held(7, 0, 950, 1500)}});
}

TEST_F(Linearizability, TakesTheLeaseOfAKilledWorkerUntilItsEnd) {
  Expect(Verdict::kLinearizable, {{Held(5, 100, 150, 700)}, {Held(6, 160, 701, 900)}});
}

TEST_F(Linearizability, RefusesTwoLeasesThatStandAtOnce) {
  ExpectRefused("lock", {{Held(5, 100, 150, 700)}, {Held(6, 200, 250, 900)}});
}

TEST_F(Linearizability, RefusesALeaseThatIsSeenBeforeTheReleaseOfTheOneBeforeBegan) {
  ExpectRefused("lock", {{Held(5, 100, 150, 700), Releasing(5, 300)}, {Held(6, 120, 299, 900)}});
}

TEST_F(Linearizability, RefusesTokensAgainstTheOrderOfTheLeases) {
  ExpectRefused("lock", {{Held(6, 100, 150, 200)}, {Held(5, 300, 350, 400)}});
}

TEST_F(Linearizability, RefusesTwoHoldersWhoseAdmittedIncrementsOverlap) {
  Lines first{Held(5, 90, 95, 700)};
  Add(first, Kind::kRead, 5, 100, 110, 0);
  Lines second{Held(6, 96, 99, 800)};
  Increment(second, 6, 105, 0);
  Add(first, Kind::kWrite, 5, 300, 310, 1);
  ExpectRefused("counter", {first, second});
  ExpectRefused("lock", {first, second});
}

// --- long histories are cut ----------------------------------------------------------------------

TEST_F(Linearizability, FindsAWrongAnswerFarFromTheBeginning) {
  Lines journal;
  std::int64_t value = 0;
  for (std::int64_t at = 100; value < 1000; at += 100) {
    const auto token = static_cast<std::uint64_t>(value + 5);
    journal.push_back(Held(token, at - 100, at - 60, at + 90));
    Increment(journal, token, at, value++);
    journal.push_back(Releasing(token, at + 35));
  }
  Expect(Verdict::kLinearizable, {journal});
  Lines stale = journal;
  Add(stale, Kind::kRead, 2000, 1'000'000, 1'000'010, value - 1);
  ExpectRefused("counter", {stale});
  journal.push_back(Held(2000, 1'000'000, 1'000'010, 2'000'000));
  journal.push_back(Held(2001, 1'000'000, 1'500'000, 2'000'000));
  ExpectRefused("lock", {journal});
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
