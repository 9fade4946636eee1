// The rows of tests.
#include "config/schema/checks.h"
#include "config/schema/schema.h"

namespace fencepost::config {
namespace {

using T = Type;

std::vector<Key> GivenKeys() {
  return {
      {.path = "tests.given",
       .type = T::kSections,
       .help = "The records that the topics hold, in their order.",
       .required = true},
      {.path = "tests.given.topic",
       .help = "One of `kafka.topics`.",
       .default_words = "the first of `kafka.topics`",
       .check = CheckTopic},
      {.path = "tests.given.partition",
       .type = T::kInteger,
       .help = "Partition.",
       .default_value = "0",
       .limits = {{"0", "10000"}}},
      {.path = "tests.given.key", .type = T::kAny, .help = "Key.", .default_words = "null"},
      {.path = "tests.given.value",
       .type = T::kAny,
       .help = "Value; null is a tombstone.",
       .default_words = "null"},
      {.path = "tests.given.headers", .type = T::kTextMap, .help = "Headers."},
      {.path = "tests.given.timestamp",
       .type = T::kInteger,
       .help = "Milliseconds since 1970.",
       .limits = {{"0", "253402300799999"}}},
  };
}

std::vector<Key> StubKeys() {
  return {
      {.path = "tests.http",
       .type = T::kSections,
       .help = "What the service of `handler.http` answers: the stubs in their order, the last one "
               "for ever. One with `record_id` answers that record only, and is looked for first. "
               "A call that no stub answers fails the test.",
       .default_words = "none",
       .may_be_empty = true},
      {.path = "tests.http.record_id", .help = "Only this record."},
      {.path = "tests.http.status",
       .type = T::kInteger,
       .help = "Status.",
       .default_value = "200",
       .limits = {{"100", "599"}}},
      {.path = "tests.http.body", .type = T::kAny, .help = "Body.", .default_words = "empty"},
      {.path = "tests.http.headers",
       .type = T::kTextMap,
       .help = "Headers of the answer, such as `Retry-After` (seconds, or a date: virtual time "
               "starts at 2027-01-15 08:00:00 GMT).",
       .check = CheckHttpHeader},
      {.path = "tests.http.timeout",
       .type = T::kBoolean,
       .help = "It does not answer.",
       .default_value = "false"},
      {.path = "tests.http.times",
       .type = T::kInteger,
       .help = "Calls that it answers; then the next one counts.",
       .default_words = "1; the last stub for ever",
       .limits = {{"1", "1000000"}}},
  };
}

std::vector<Key> FaultKeys() {
  return {
      {.path = "tests.faults", .help = "What breaks on the way."},
      {.path = "tests.faults.kill_worker_after",
       .type = T::kChoice,
       .help = "Once, a worker dies right after this stage of a record; another takes over.",
       .choices = {"lock", "handler", "output", "commit"}},
      {.path = "tests.faults.lease_lost_during",
       .type = T::kChoice,
       .help = "Once, a lease is lost in this stage of a record.",
       .choices = {"lock", "handler", "output", "commit"}},
      {.path = "tests.faults.redis_nodes_down",
       .type = T::kInteger,
       .help = "Lock nodes that are down from the start; a majority is back after a minute.",
       .default_value = "0",
       .limits = {{"0", "7"}}},
      {.path = "tests.faults.duplicate",
       .type = T::kInteger,
       .help = "Each given record is produced so many times more.",
       .default_value = "0",
       .limits = {{"0", "1000"}}},
  };
}

std::vector<Key> ExpectKeys() {
  return {
      {.path = "tests.expect",
       .help = "What must come out; what is not given is not looked at.",
       .required = true},
      {.path = "tests.expect.rows",
       .type = T::kRows,
       .help = "All rows that the output holds at the end, in any order, each with the cells that "
               "matter; a null cell is SQL NULL.",
       .may_be_empty = true},
      {.path = "tests.expect.rows_in_order",
       .type = T::kBoolean,
       .help = "`rows` are in the order in which they are written.",
       .default_value = "false"},
      {.path = "tests.expect.dead_letters",
       .type = T::kRows,
       .help = "All dead letters, in any order: `error_class`, `error`, `record_id`, `topic`, "
               "`partition`, `offset`, `attempts`, `key`, `value`.",
       .may_be_empty = true},
      {.path = "tests.expect.skips",
       .type = T::kInteger,
       .help = "Records that were complete already.",
       .limits = {{"0", "1000000"}}},
      {.path = "tests.expect.handler_calls",
       .type = T::kInteger,
       .help = "Calls of the handler.",
       .limits = {{"0", "1000000"}}},
      {.path = "tests.expect.stops_with",
       .help = "The pipeline stops with this error, such as `id_conflict`.",
       .check = CheckWord},
  };
}

}  // namespace

std::vector<Key> TestKeys() {
  std::vector<Key> keys = {
      {.path = "tests",
       .type = T::kSections,
       .help = "Tests of the pipeline, run by `fencepost test`; see below.",
       .may_be_empty = true},
      {.path = "tests.name", .help = "Its name, once.", .required = true},
  };
  for (const auto& part : {GivenKeys(), StubKeys(), FaultKeys(), ExpectKeys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  return keys;
}

}  // namespace fencepost::config
