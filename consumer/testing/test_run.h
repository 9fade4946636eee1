// Runs one test of a pipeline file in process, on virtual time (README.md). One thread; exec and jq
// handlers run for real beside it. One that cannot be ended is left running, with all that it uses
// (report.stuck): the options must then stay to the end of the process, and that by _exit, since
// what is destroyed at a normal end may be in use.
#pragma once

#include <string>
#include <vector>

#include "consumer/pipeline/options.h"
#include "consumer/pipeline/pipeline_test.h"

namespace fencepost::consumer {

struct TestFailure {
  int line = 0;      // of what was expected, in the pipeline file
  std::string text;  // may have several lines
};

struct TestReport {
  std::vector<TestFailure> failures;  // none: passed
  Millis virtual_time{0};
  std::size_t records = 0;  // that were in the topics
  // The last of what the handler wrote to stderr, how it failed and what was stalled; to be shown
  // with the failures.
  std::vector<std::string> notes;
  bool stuck = false;
};

TestReport RunPipelineTest(const PipelineOptions& options, const PipelineTest& test);

}  // namespace fencepost::consumer
