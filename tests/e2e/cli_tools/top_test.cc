// fencepost top over a real group: its workers by what the coordinator knows, and by address.
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/e2e/cli_tools/tools_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Top : public ToolsTest {
 protected:
  // Its row, whose end is its partitions.
  static std::string LineOf(const std::string& table, const std::string& worker) {
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(worker + "  ")) return line;
    }
    return "";
  }
};

TEST_F(Top, AsksTheGroupsWorkersAndThoseThatAreNamed) {
  ToolsText(4);
  Orders orders(Kafka().bootstrap(), name_, 4);
  orders.Produce(8);
  const Finished nobody = Tool({"top"}, {"--set", "observe.http=127.0.0.1:9464"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.error_output, HasSubstr("no worker is in group '" + name_ + "'"));
  WorkerProcess one({.files = {file_}, .name = "worker-1"});
  ASSERT_TRUE(AllCommitted()) << one.Log();
  const std::string port = fmt::format("observe.http=127.0.0.1:{}", one.port());
  const Finished member = Tool({"top"}, {"--set", port});
  EXPECT_EQ(member.exit_code, 0) << member.error_output;
  EXPECT_THAT(member.output, AllOf(HasSubstr("group " + name_ + ": 1 worker, version "),
                                   HasSubstr("worker-1  ready"), HasSubstr("0-3")));
  WorkerProcess two({.files = {file_}, .name = "worker-2"});
  const auto both = [&] {
    return Tool({"top"}, {"--worker", fmt::format("127.0.0.1:{}", one.port()), "--worker",
                          fmt::format("127.0.0.1:{}", two.port())});
  };
  EXPECT_TRUE(WaitUntil(seconds(60), "both to have partitions", [&] {
    const std::string said = both().output;
    return LineOf(said, "worker-1").ends_with("-1") && LineOf(said, "worker-2").ends_with("-3");
  })) << both().output;
  two.Kill();
  (void)two.Wait(seconds(20));
  const Finished left = both();
  EXPECT_EQ(left.exit_code, 1);
  EXPECT_THAT(LineOf(left.output, "worker-1"), HasSubstr("ready"));
  EXPECT_THAT(left.output, HasSubstr(fmt::format("127.0.0.1:{}: no answer: ", two.port())));
  EXPECT_EQ(Tool({"top"}, {"--worker", "nowhere"}).exit_code, 2);
}

// Two on one host have a port each, which the file cannot say for both.
TEST_F(Top, FindsWorkersWhereTheySayThatTheyAreReached) {
  ToolsText(2);
  Orders orders(Kafka().bootstrap(), name_, 2);
  orders.Produce(4);
  const auto at = [&](const std::string& name) {
    const std::string address = fmt::format("127.0.0.1:{}", FreePort());
    return WorkerOptions{
        .files = {file_, "--set", "observe.advertise=" + address}, .name = name, .http = address};
  };
  const WorkerProcess one(at("worker-1"));
  const WorkerProcess two(at("worker-2"));
  EXPECT_TRUE(WaitUntil(seconds(60), "both to be members", [&] {
    return Tool({"top"}, {"--set", "observe.http=127.0.0.1:1"}).exit_code == 0 && one.Ready() &&
           two.Ready();
  }));
  const Finished all = Tool({"top"}, {"--set", "observe.http=127.0.0.1:1"});
  EXPECT_EQ(all.exit_code, 0) << all.error_output;
  EXPECT_THAT(LineOf(all.output, "worker-1"), ::testing::EndsWith("  0")) << all.output;
  EXPECT_THAT(LineOf(all.output, "worker-2"), ::testing::EndsWith("  1")) << all.output;
  const auto fleet = nlohmann::json::parse(two.Get("/fleet.json").body).at("pipelines").at(0);
  EXPECT_EQ(fleet.at("group"), name_);
  EXPECT_EQ(fleet.at("without_worker"), nlohmann::json::object());
  for (const int i : {0, 1}) {
    const auto& worker = fleet.at("workers").at(i);
    EXPECT_EQ(worker.at("worker"), fmt::format("worker-{}", i + 1));
    EXPECT_EQ(worker.at("state"), "ready") << worker;
    EXPECT_EQ(worker.at("partitions").at(name_), nlohmann::json::array({i}));
  }
}

}  // namespace
}  // namespace fencepost::testing
