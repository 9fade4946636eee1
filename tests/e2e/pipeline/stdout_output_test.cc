// What `output.stdout` prints is for another program to read.
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

class StdoutOutput : public PipelineTest {};

TEST_F(StdoutOutput, PrintsNothingButTheLinesOfRecords) {
  PipelineText text = Text(1);
  text.guarantee = "at-least-once";
  text.output = "output: {stdout: {columns: {order_id: json:/order_id}}}\n";
  Orders orders = Produced(5, 1);
  WorkerProcess worker(Worker(text));
  ExpectAllDone(worker);
  std::istringstream lines(worker.Output());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(json.is_object() && json.contains("order_id")) << line;
  }
  EXPECT_EQ(count, 5);
  EXPECT_THAT(worker.Log(), ::testing::HasSubstr("listening on http://127.0.0.1:"));
}

}  // namespace
}  // namespace fencepost::testing
