// fencepost top over a real group: its workers by what the coordinator knows, and by address.
#include <sstream>

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
  EXPECT_EQ(left.exit_code, 0);
  EXPECT_THAT(left.output, HasSubstr(fmt::format("127.0.0.1:{}: no answer: ", two.port())));
  EXPECT_EQ(Tool({"top"}, {"--worker", "nowhere"}).exit_code, 2);
}

}  // namespace
}  // namespace fencepost::testing
