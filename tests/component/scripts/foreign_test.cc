// Keys of lock names that hold something else, on a real redis-server.
#include "tests/component/scripts/node_fixture.h"

namespace fencepost::testing {
namespace {

// What is no lock, though some of it begins like one.
const std::vector<std::vector<std::string>>& ForeignValues() {
  static const std::string key = "fencepost:{orders}:o-17";
  static const std::vector<std::vector<std::string>> commands = {
      {"RPUSH", key, "a list"},
      {"HSET", key, "a", "hash"},
      {"SADD", key, "a set"},
      {"XADD", key, "*", "a", "stream"},
      {"SET", key, ""},
      {"SET", key, "somebody's text"},
      {"SET", key, "Hello"},
      {"SET", key, "Forever"},
      {"SET", key, "Dear diary"},
      {"SET", key, "H" + std::string(43, 'x')},
      {"SET", key, "H" + std::string(27, '0') + std::string(16, 'n') + "and a tail that is"},
      {"SET", key, "H" + std::string(27, '0') + std::string(16, 'n') + std::string(16, 'x')},
      {"SET", key, "F" + std::string(16, 'x')},
      {"SET", key, "D" + std::string(24, 'x')},
      // Hex digits are written small.
      {"SET", key, "H" + std::string(27, 'A') + std::string(16, 'n')},
      {"SET", key, "H" + std::string(27, '0') + std::string(16, 'n') + std::string(16, 'F')},
      {"SET", key, "F" + std::string(15, '0') + "A"},
      {"SET", key, "D" + std::string(24, 'B')}};
  return commands;
}

class ForeignValue : public Node {};

TEST_F(ForeignValue, LeavesAKeyAloneThatHoldsSomethingElseAndServesItsNeighbours) {
  const std::vector<std::string> names = {name_ + "-before", name_, name_ + "-behind"};
  for (const auto& command : ForeignValues()) {
    for (int number = 0; number < locking::kOpKinds; ++number) {
      const auto kind = static_cast<OpKind>(number);
      SCOPED_TRACE(fmt::format("kind {}, {} {}", number, command[0], command[2]));
      client_.Command({"DEL", names[0], names[1], names[2]});
      client_.Command(command);
      const std::string before = client_.Command({"DUMP", name_});
      std::vector<Op> ops;
      for (const std::string& name : names) {
        ops.push_back(Make(kind, At(), 1));
        ops.back().name = name;
      }
      const CallResult result = client_.Call(kind, ops, options_);
      ASSERT_EQ(result.error, "");
      EXPECT_LT(result.replies[0].code, ReplyCode::kNoSentinel);
      EXPECT_EQ(result.replies[1].code, ReplyCode::kForeign);
      EXPECT_LT(result.replies[2].code, ReplyCode::kNoSentinel);
      EXPECT_EQ(client_.Command({"DUMP", name_}), before);
    }
    // An acquire that is refused whoever holds the name only looks.
    EXPECT_EQ(Code(Make(OpKind::kAcquire, At(), 1, kMaxTtl + Millis(1))), ReplyCode::kForeign);
  }
}

// What the node refuses is no foreign value.
TEST_F(ForeignValue, ReportsWhatTheNodeRefusesToReadAsAnError) {
  std::string script(locking::ScriptFor(OpKind::kInspect).text);
  script.insert(script.find('\n') + 1,
                "local given = redis\n"
                "local redis = {call = given.call, pcall = function(_, key)\n"
                "  return {err = key}\n"
                "end}\n");
  const auto look = [&](const std::string& answer) {
    return client_.Command(
        {"EVAL", script, "2", std::string(locking::kSentinelKey), answer, "1000"});
  };
  EXPECT_EQ(look("NOPERM of this key").substr(0, 6), "NOPERM");
  EXPECT_TRUE(look("WRONGTYPE of this key").ends_with("?"));
}

}  // namespace
}  // namespace fencepost::testing
