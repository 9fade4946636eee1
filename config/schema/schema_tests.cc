// The rows of tests.
#include "config/schema/checks.h"
#include "config/schema/schema.h"

namespace fencepost::config {
namespace {

using T = Type;

std::vector<Key> GivenKeys() {
  const KeysOf given("tests.given");
  return {
      given("", "The records that the topics hold, in their order.",
            {.type = T::kSections, .required = true}),
      given("topic", "One of `kafka.topics`.",
            {.default_words = "the first name of `kafka.topics`", .check = CheckTopic}),
      given("partition", "Partition.",
            {.type = T::kInteger, .default_value = "0", .limits = {{"0", "10000"}}}),
      given("key", "Key.", {.type = T::kAny, .default_words = "null"}),
      given("value", "Value; null is a tombstone.", {.type = T::kAny, .default_words = "null"}),
      given("headers", "Headers.", {.type = T::kTextMap}),
      given("timestamp", "Milliseconds since 1970.",
            {.type = T::kInteger, .limits = {{"0", "253402300799999"}}}),
  };
}

std::vector<Key> StubKeys() {
  const KeysOf http("tests.http");
  return {
      http("",
           "What the service of `handler.http` answers: the stubs in their order, the last one for "
           "ever. One with `record_id` answers that record only, and is looked for first. A call "
           "that no stub answers fails the test.",
           {.type = T::kSections, .default_words = "none", .may_be_empty = true}),
      http("record_id", "Only this record."),
      http("status", "Status.",
           {.type = T::kInteger, .default_value = "200", .limits = {{"100", "599"}}}),
      http("body", "Body.", {.type = T::kAny, .default_words = "empty"}),
      http("headers",
           "Headers of the answer, such as `Retry-After` (seconds, or a date: virtual time starts "
           "at 2027-01-15 08:00:00 GMT).",
           {.type = T::kTextMap, .check = CheckHttpHeader}),
      http("timeout", "It does not answer.", {.type = T::kBoolean, .default_value = "false"}),
      http("batch",
           "How a batch is answered: `verdicts`; `reversed`; `half` of them; `twice` the first "
           "one's, "
           "not the last's; `values` without ids; `few`, one less. A failing stub of all records "
           "fails the batch whole.",
           {.type = T::kChoice,
            .default_value = "verdicts",
            .choices = {"verdicts", "reversed", "values", "few", "half", "twice"}}),
      http("times", "Calls that it answers; then the next one counts.",
           {.type = T::kInteger,
            .default_words = "1; the last stub for ever",
            .limits = {{"1", "1000000"}}}),
  };
}

std::vector<Key> FaultKeys() {
  const KeysOf faults("tests.faults");
  return {
      faults("", "What breaks on the way."),
      faults("kill_worker_after",
             "Once, a worker dies right after this stage of a record; another takes over.",
             {.type = T::kChoice, .choices = {"lock", "handler", "output", "commit"}}),
      faults("lease_lost_during", "Once, a lease is lost in this stage of a record.",
             {.type = T::kChoice, .choices = {"lock", "handler", "output", "commit"}}),
      faults("redis_nodes_down",
             "Lock nodes that are down from the start; a majority is back after a minute.",
             {.type = T::kInteger, .default_value = "0", .limits = {{"0", "7"}}}),
      faults("duplicate", "Each given record is produced so many times more.",
             {.type = T::kInteger, .default_value = "0", .limits = {{"0", "1000"}}}),
  };
}

std::vector<Key> ExpectKeys() {
  const KeysOf expect("tests.expect");
  return {
      expect("", "What must come out; what is not given is not looked at.", {.required = true}),
      expect("rows",
             "All rows that the output holds at the end, in any order, with the cells that matter; "
             " a null cell is SQL NULL; 12.5 is 12.50 where it is not quoted. With `effects` "
             "or `records` `{TABLE: [ROW, …]}`.",
             {.type = T::kRows, .may_be_empty = true, .or_by_table = true}),
      expect("rows_in_order", "`rows` are in the order in which they are written.",
             {.type = T::kBoolean, .default_value = "false"}),
      expect("dead_letters",
             "All dead letters, in any order: `error_class`, `error`, `record_id`, `topic`, "
             "`partition`, `offset`, `attempts`, `key`, `value`.",
             {.type = T::kRows, .may_be_empty = true}),
      expect("skips", "Records that were complete already.",
             {.type = T::kInteger, .limits = {{"0", "1000000"}}}),
      expect("filtered", "Records that `when` leaves out.",
             {.type = T::kInteger, .limits = {{"0", "1000000"}}}),
      expect("handler_calls", "Calls of the handler; a batch is one.",
             {.type = T::kInteger, .limits = {{"0", "1000000"}}}),
      expect("stops_with", "The pipeline stops with this error, such as `id_conflict`.",
             {.check = CheckWord}),
  };
}

}  // namespace

std::vector<Key> TestKeys() {
  const KeysOf tests("tests");
  std::vector<Key> keys = {
      tests("", "Tests of the pipeline, run by `fencepost test`; see below.",
            {.type = T::kSections, .may_be_empty = true}),
      tests("name", "Its name, once.", {.required = true}),
  };
  for (const auto& part : {GivenKeys(), StubKeys(), FaultKeys(), ExpectKeys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  return keys;
}

}  // namespace fencepost::config
