// The pipeline's output as a test has it. A database: the shipped SQLite output on a file of the
// test's own, its table made of the columns, all text, but for bytes; Kafka: an output in memory
// that takes records and offsets together; file and stdout: the shipped file output. All workers of
// a test share what is written. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// One row in the output: its cells by name.
using TestRow = std::vector<std::pair<std::string, std::optional<std::string>>>;

class TestOutput {
 public:
  // Error: why a test cannot have this output.
  static tl::expected<std::unique_ptr<TestOutput>, std::string> Make(
      const PipelineOptions& options);
  virtual ~TestOutput() = default;
  // The output as one worker has it.
  virtual std::unique_ptr<Output> Open(const std::string& worker) = 0;
  // What is there now, in the order in which it was written.
  virtual std::vector<TestRow> Rows() = 0;
};

}  // namespace fencepost::consumer
