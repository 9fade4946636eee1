// The `tests:` of a pipeline file, as values: what `fencepost test` feeds to the pipeline, what it
// breaks on the way, and what must come out. config/ fills them, consumer/testing runs them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct GivenRecord {
  std::string topic;  // the pipeline's first one where the file does not say
  std::int32_t partition = 0;
  std::optional<std::string> key;
  std::optional<std::string> value;  // a YAML map or list is given as its JSON text
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<Millis> timestamp;  // unix time
  int line = 0;
};

// What the HTTP service answers. Stubs are used in order, the last one for ever; one with
// `record_id` answers that record only, and is looked for first.
struct HttpStub {
  std::optional<std::string> record_id;
  int status = 200;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  bool timeout = false;            // it does not answer
  std::string batch = "verdicts";  // how a batch is answered
  std::optional<int> times;        // then it is used up
  int line = 0;
};

// Where in a record's life a fault strikes.
enum class LifeStage : std::uint8_t { kLock, kHandler, kOutput, kCommit };

struct TestFaults {
  std::optional<LifeStage> kill_worker_after;  // once: the worker dies, another takes over
  std::optional<LifeStage> lease_lost_during;  // once
  int redis_nodes_down = 0;  // from the start; a majority down is ended after a minute
  int duplicate = 0;         // each given record is produced so many times more
};

// Before the name of a written record's header, as the name of a cell.
inline constexpr std::string_view kHeaderCell = "header:";

// The name of the cell that says in which table a row is, where an output has several.
inline constexpr std::string_view kTableCell = "(table)";

struct ExpectedRow {
  std::vector<std::pair<std::string, std::optional<std::string>>> cells;  // in any order; a subset
  std::vector<std::string> numbers;  // those that are given as numbers: 12.5 is 12.50
  int line = 0;
};

struct ExpectedDeadLetter {
  std::vector<std::pair<std::string, std::string>> fields;  // error_class, record_id, key, value, …
  int line = 0;
};

struct PipelineTest {
  std::string name;
  std::string file;  // of all its lines
  int line = 0;
  std::vector<GivenRecord> given;
  std::vector<HttpStub> http;
  TestFaults faults;
  // Not given: not looked at. An empty list: there must be none.
  std::optional<std::vector<ExpectedRow>> rows;  // all rows of the output, in any order
  bool rows_in_order = false;
  std::optional<std::vector<ExpectedDeadLetter>> dead_letters;
  std::optional<int> skips;
  std::optional<int> filtered;
  std::optional<int> handler_calls;
  std::optional<std::string> stops_with;  // the pipeline stops with this error code
};

}  // namespace fencepost::consumer
