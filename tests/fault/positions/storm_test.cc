// A short storm for every database; `./dev torture positions N`: long ones, seeds 1 to N.
#include "tests/fault/positions/storm.h"

#include <cstdlib>

#include "tests/support/mysql_server.h"

namespace fencepost::positions {
namespace {

class PositionsInAStorm : public testing::PipelineTest {
 protected:
  static void Run(std::uint64_t seed, int steps) {
    static testing::MysqlServer mysql;
    Storm storm({.kafka = Kafka(), .postgres = Postgres(), .mysql = mysql}, seed, steps);
    try {
      storm.Run();
    } catch (const std::exception& e) {
      FAIL() << "seed " << seed << ": " << e.what() << '\n' << storm.Tails();
    }
    EXPECT_EQ(storm.trouble(), "") << "seed " << seed << '\n' << storm.Tails();
    std::printf("%s\n", storm.Line().c_str());
    std::fflush(stdout);
  }
  static std::uint64_t Number(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  }
};

TEST_F(PositionsInAStorm, AreNeitherLostNorDoubledNorSkippedInSilence) {
  const std::uint64_t first = Number("FENCEPOST_SEED", 1);
  const std::uint64_t count = Number("FENCEPOST_TORTURE", 0);
  for (std::uint64_t seed = first; seed < first + (count == 0 ? 3 : count); ++seed) {
    Run(seed, count == 0 ? 3 : 12);
  }
}

}  // namespace
}  // namespace fencepost::positions
