// A primary that dies, and a standby that takes its place.
#include <gmock/gmock.h>

#include <regex>

#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"
#include "tests/support/tcp_proxy.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PostgresFailover : public PipelineTest {
 protected:
  // A pipeline that may write to either of the two.
  PipelineText TextOfBoth(int partitions) {
    PipelineText text = Text(partitions);
    text.dsn = fmt::format("postgresql://postgres@127.0.0.1:{},127.0.0.1:{}/{}", primary_.port(),
                           standby_.port(), name_);
    return text;
  }
  [[nodiscard]] int StandbyCount() const {
    try {
      return std::stoi(standby_.Value("SELECT count(*) FROM effects", name_));
    } catch (const std::exception&) {
      return -1;
    }
  }
  // The TOPIC,PARTITION,OFFSET that the worker names at its end, into the group's offsets.
  void GoBackTo(const std::string& line) {
    std::vector<std::int64_t> offsets = Committed();
    const std::regex named(name_ + ",([0-9]+),([0-9]+)");
    for (std::sregex_iterator at(line.begin(), line.end(), named), end; at != end; ++at) {
      std::int64_t& offset = offsets.at(std::stoul((*at)[1]));
      EXPECT_LT(std::stoll((*at)[2]), offset);
      offset = std::stoll((*at)[2]);
    }
    Kafka().admin().CommitOffsets(name_, name_, offsets);
  }

  // The block of deploy/operations/failover.md, for this pipeline.
  [[nodiscard]] std::string GapsSql() const {
    const std::string text = ReadFile(testing::SourcePath("deploy/operations/failover.md"));
    const std::size_t at = text.find("\n-- gaps.sql\n");
    const std::string sql = text.substr(at, text.find("```", at) - at);
    return std::regex_replace(sql, std::regex("'orders'"), "'" + name_ + "'");
  }
  // Where a server that was promoted left the timeline before its own.
  static std::string LeftAt(const PostgresServer& server) {
    const std::string history = server.Value(
        "SELECT pg_read_file('pg_wal/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || "
        "'.history')");
    std::smatch found;
    EXPECT_TRUE(std::regex_search(history, found, std::regex("^1\t([0-9A-F/]+)\t"))) << history;
    return found[1];
  }
  static std::ptrdiff_t CommitsBehind(const std::string& waldump, const std::string& data,
                                      const std::string& place) {
    const Finished dumped =
        RunToEnd({.argv = {waldump, "--path=" + data + "/pg_wal", "--timeline=1",
                           "--start=" + place, "--rmgr=Transaction"},
                  .separate_stderr = true});
    const std::regex commit("COMMIT");
    return std::distance(std::sregex_iterator(dumped.output.begin(), dumped.output.end(), commit),
                         {});
  }

  PostgresServer primary_;
  TcpProxy stream_{primary_.port()};
  EffectsTable at_primary_{primary_, name_};
  PostgresServer standby_{primary_, stream_.port()};
  EffectsTable at_standby_{standby_, name_, EffectsTable::kIsThere};
};

TEST_F(PostgresFailover, ToAStandbyThatLacksCommitsStopsTheWorkerWhichNamesTheOffsets) {
  const PipelineText text = TextOfBoth(4);
  Orders orders(Kafka().bootstrap(), name_, 4, 3);
  std::string line;
  {
    WorkerProcess worker(Worker(text));
    orders.Produce(2000);
    ASSERT_TRUE(AllCommitted()) << worker.Log();
    ASSERT_TRUE(
        WaitUntil(seconds(30), "the standby to have all", [&] { return StandbyCount() == 2000; }));
    stream_.Refuse();
    orders.Produce(1000);
    ASSERT_TRUE(AllCommitted()) << worker.Log();
    ASSERT_EQ(StandbyCount(), 2000);
    primary_.Kill();
    standby_.Promote();
    orders.Produce(10);
    ASSERT_EQ(worker.Wait(seconds(60)), 1) << worker.Log();
    for (const std::string& said : worker.ErrorLines()) line += said + "\n";
  }
  EXPECT_THAT(line, AllOf(HasSubstr(fmt::format("127.0.0.1:{}/{}", standby_.port(), name_)),
                          HasSubstr("the database lost"), HasSubstr("timeline 1 -> 2")));
  GoBackTo(line);
  WorkerProcess worker(Worker(text));
  ExpectAllDone(worker);
  EXPECT_EQ(at_standby_.Audit(name_, orders.unique()), "");
}

// What failover.md tells to do then.
TEST_F(PostgresFailover, AWorkerThatWasStartedSinceNoticesNothingAndTheLedgersGapsTell) {
  const PipelineText text = TextOfBoth(4);
  Orders orders(Kafka().bootstrap(), name_, 4, 3);
  {
    WorkerProcess worker(Worker(text));
    orders.Produce(2000);
    ASSERT_TRUE(AllCommitted()) << worker.Log();
    ASSERT_TRUE(
        WaitUntil(seconds(30), "the standby to have all", [&] { return StandbyCount() == 2000; }));
    stream_.Refuse();
    orders.Produce(1000);
    ASSERT_TRUE(AllCommitted()) << worker.Log();
    ASSERT_EQ(worker.Stop(), 0) << worker.Log();
  }
  const std::string waldump =
      primary_.Value("SELECT setting FROM pg_config() WHERE name = 'BINDIR'") + "/pg_waldump";
  const std::string data = primary_.Value("SHOW data_directory");
  primary_.Kill();
  standby_.Promote();
  {
    WorkerProcess worker(Worker(text));
    orders.Produce(400);
    ASSERT_TRUE(AllCommitted()) << worker.Log();
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  }
  EXPECT_EQ(StandbyCount(), 2400);
  EXPECT_GT(CommitsBehind(waldump, data, LeftAt(standby_)), 0);
  const auto gaps = standby_.Exec(GapsSql(), name_);
  ASSERT_EQ(gaps.size(), 8u) << "of each partition the gap, and the end";
  std::string lost;
  std::int64_t records = 0;
  for (const auto& gap : gaps) {
    if (!gap.at(3)) continue;
    records += std::stoll(*gap[3]) - std::stoll(*gap[2]) + 1;
    lost += fmt::format("{},{},{}\n", *gap[0], *gap[1], *gap[2]);
    const Finished told =
        RunFencepost({"explain", Worker(text).files[0], *gap[0], *gap[1], *gap[2]});
    EXPECT_THAT(told.output, HasSubstr("there is no trace of it"));
  }
  EXPECT_EQ(records, 1000);
  GoBackTo(lost);
  WorkerProcess worker(Worker(text));
  ExpectAllDone(worker);
  EXPECT_EQ(at_standby_.Audit(name_, orders.unique()), "");
}

}  // namespace
}  // namespace fencepost::testing
