#include "tests/e2e/life/combination.h"

#include <array>
#include <ostream>

#include <fmt/format.h>

namespace fencepost::testing {
namespace {

constexpr std::array kHandlers = {"none", "http", "exec", "jq"};
constexpr std::array kTargets = {"postgres", "sqlite", "kafka", "file", "stdout"};

std::string HandlerYaml(const Combination& combination, const Surroundings& around) {
  switch (combination.handling) {
    case Handling::kNone:
      return "";
    case Handling::kHttp:
      return around.service.HandlerYaml(combination.Name());
    case Handling::kExec:
      return around.script.HandlerYaml(combination.Name());
    case Handling::kJq:
      return fmt::format("handler:\n  jq: '{{order_id, amount: (.amount * {})}}'\n",
                         combination.Factor());
  }
  return "";
}

// Every output says the same of each effect.
constexpr std::string_view kColumns =
    "{order_id: json:/order_id, amount: json:/amount, source_partition: partition,"
    " source_offset: offset, life: \"=${LIFE}\"";

std::string OutputYaml(const Combination& combination, const Surroundings& around) {
  const std::string name = combination.Name();
  const auto table = [&](const std::string& where) {
    return fmt::format("{}    table: effects\n    columns: {}, pipeline: \"={}\"}}\n", where,
                       kColumns, name);
  };
  switch (combination.target) {
    case Target::kPostgres:
      return table(fmt::format("  postgres:\n    dsn: {}\n", around.dsn));
    case Target::kSqlite:
      return table(fmt::format("  sqlite:\n    path: {}\n", around.files.path(name)));
    case Target::kKafka:
      // A successor of the same name ends what its predecessor left open: nobody waits this long.
      return fmt::format(
          "  kafka: {{topic: out-{}, transaction_timeout: 60s, headers: {{source_partition: "
          "partition, source_offset: offset, life: \"=${{LIFE}}\"}}}}\n",
          name);
    case Target::kFile:
      return fmt::format("  file:\n    path: {}/{}.jsonl\n    columns: {}}}\n", around.folder, name,
                         kColumns);
    case Target::kStdout:
      return fmt::format("  stdout:\n    columns: {}}}\n", kColumns);
  }
  return "";
}

}  // namespace

std::string Combination::Name() const {
  return fmt::format("{}-{}", kHandlers.at(static_cast<std::size_t>(handling)),
                     kTargets.at(static_cast<std::size_t>(target)));
}

void PrintTo(const Combination& combination, std::ostream* out) {
  *out << combination.Name() << ", order: " << combination.order;
}

const std::vector<Combination>& AllCombinations() {
  using enum Handling;
  using enum Target;
  static const std::vector<Combination> all = {
      {kNone, kPostgres, "partition"}, {kNone, kSqlite, "key"},
      {kNone, kKafka, "partition"},    {kNone, kFile, "none"},
      {kHttp, kPostgres, "key"},       {kHttp, kSqlite, "partition"},
      {kHttp, kKafka, "partition"},    {kHttp, kFile, "key"},
      {kExec, kPostgres, "partition"}, {kExec, kSqlite, "none"},
      {kExec, kKafka, "partition"},    {kExec, kFile, "key"},
      {kJq, kPostgres, "key"},         {kJq, kSqlite, "partition"},
      {kJq, kKafka, "partition"},      {kJq, kFile, "partition"},
      {kJq, kStdout, "key"},
  };
  return all;
}

std::string PipelineYaml(const Combination& combination, const Surroundings& around) {
  const bool once = !combination.AtLeastOnce();
  // What a dead worker held stays on the nodes for ttl + 2 * max_skew: longer than its session and
  // most rebalances, so that takeovers are seen. The other times are long: on a busy machine nobody
  // shall lose a lease, or give a call up, but the killed and the frozen one.
  return fmt::format(
             "version: 1\nname: {}\nguarantee: {}\n"
             "kafka:\n  brokers: [{}]\n  topics: [{}]\n"
             "  librdkafka: {{session.timeout.ms: 4000, heartbeat.interval.ms: 500}}\n"
             "record_id: {}\n"
             "lock:\n  redis: {{nodes: [{}], timeout: 2s}}\n"
             "  ttl: 3s\n  min_validity: 1s\n  max_skew: 4s\n"
             "processing: {{order: {}, concurrency: 16, timeout: 60s}}\n"
             "{}{}output:\n",
             combination.Name(), once ? "exactly-once" : "at-least-once", around.brokers,
             combination.Topic(), combination.ByPosition() ? "position" : "json:/order_id",
             around.nodes, combination.order,
             combination.Outside() ? "retry: {backoff: {initial: 20ms}}\n" : "",
             HandlerYaml(combination, around)) +
         OutputYaml(combination, around);
}

}  // namespace fencepost::testing
