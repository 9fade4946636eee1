// The commands over two groups of lock nodes: --redis once for each.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "locking/core/group_place.h"
#include "tests/support/redis_server.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class LockGroupsCli : public ::testing::Test {
 protected:
  LockGroupsCli() {
    for (const std::size_t group : {0U, 1U}) {
      for (std::size_t i = 0; i < 3; ++i) {
        lists_[group] += (i == 0 ? "" : ",") + nodes_.addresses()[3 * group + i];
      }
    }
  }
  [[nodiscard]] Finished Tool(std::vector<std::string> words,
                              const std::vector<std::string>& more = {}) const {
    words.insert(words.end(), {"--redis", lists_[0], "--redis", lists_[1]});
    words.insert(words.end(), more.begin(), more.end());
    return RunFencepost(words);
  }
  // A name of `lock exec` that belongs to the group.
  static std::string NameOf(int group, std::string name = "job") {
    while (locking::GroupOf("fencepost:{default}:" + name, 2) != group) name += "+";
    return name;
  }

  RedisServers nodes_{6};
  std::array<std::string, 2> lists_;
};

TEST_F(LockGroupsCli, MakeAndShowEachGroup) {
  const Finished init = Tool({"locks", "init"});
  ASSERT_EQ(init.exit_code, 0) << init.error_output;
  EXPECT_THAT(init.output, AllOf(HasSubstr("of group 1 of 2 created over 3 nodes; it counts"),
                                 HasSubstr("of group 2 of 2 created over 3 nodes; it counts")));
  EXPECT_EQ(Tool({"locks", "init"}).exit_code, 1);
  EXPECT_EQ(Tool({"locks", "init", "--if-missing"}).exit_code, 0);

  for (const int group : {0, 1}) {
    const std::string name = NameOf(group);
    EXPECT_EQ(Tool({"lock", "exec"}, {name, "--done", "--", "true"}).exit_code, 0);
    const json seen = json::parse(Tool({"locks", "inspect"}, {name, "--json"}).output).at(0);
    EXPECT_EQ(seen["verdict"], "done") << seen;
    ASSERT_EQ(seen["nodes"].size(), 3U);
    EXPECT_EQ(seen["nodes"][0]["node"], group == 0 ? "a" : "d");
  }

  const json status = json::parse(Tool({"locks", "status"}, {"--json"}).output);
  EXPECT_EQ(status["nodes"][4]["state"], "ok") << status;
  EXPECT_EQ(status["nodes"][4]["store"]["group"], 2);

  for (const std::size_t node : {3U, 5U}) nodes_[node].Stop();
  const Finished without = Tool({"locks", "status"});
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_THAT(without.output, AllOf(HasSubstr("quorum of group 1 of 2: available"),
                                    HasSubstr("quorum of group 2 of 2: not available")));
  EXPECT_EQ(Tool({"lock", "exec"}, {NameOf(0, "late"), "--", "true"}).exit_code, 0);
}

TEST_F(LockGroupsCli, RefuseAnotherOrderInOneLineAndLockNothing) {
  ASSERT_EQ(Tool({"locks", "init"}).exit_code, 0);
  std::swap(lists_[0], lists_[1]);
  const Finished exec = Tool({"lock", "exec"}, {"job", "--wait", "1s", "--", "true"});
  EXPECT_EQ(exec.exit_code, 69);
  EXPECT_THAT(exec.error_output, HasSubstr(" of 2, but it is listed in group "));
  const Finished init = Tool({"locks", "init", "--if-missing"});
  EXPECT_EQ(init.exit_code, 1);
  EXPECT_THAT(init.error_output, HasSubstr("its lock store is group 2 of 2"));
}

}  // namespace
}  // namespace fencepost::testing
