#include "consumer/flow/flow_options.h"

#include <array>
#include <variant>

namespace fencepost::consumer {

namespace {

// By the alternatives of HandlerOptions::kind and OutputOptions.
constexpr std::array<const char*, 6> kHandlers = {"", "http", "exec", "jq", "take", "custom"};
static_assert(kHandlers.size() == std::variant_size_v<decltype(HandlerOptions::kind)>);
constexpr std::array<const char*, 7> kSystems = {"",      "postgresql", "mysql", "sqlite",
                                                 "kafka", "file",       "stdout"};
static_assert(kSystems.size() == std::variant_size_v<OutputOptions>);

}  // namespace

FlowOptions FlowOptionsOf(const PipelineOptions& options) {
  FlowOptions flow;
  flow.pipeline = options.name;
  flow.group = options.kafka.group;
  flow.handler_kind = kHandlers[options.handler.kind.index()];
  flow.output_system = kSystems[options.output.index()];
  if (options.dead_letter) flow.dead_letter_topic = options.dead_letter->topic;
  flow.traces = options.observe.traces;
  flow.identity = options.identity;
  flow.order = options.processing.order;
  flow.on_id_conflict = options.on_id_conflict;
  flow.on_bad_record = options.on_bad_record;
  flow.finality = FinalityOf(options.output);
  flow.handler = options.handler;
  if (options.handler.outside()) flow.required = RequiredPartsOf(options.output, options.handler);
  flow.tuning = TuningOf(options);
  flow.handler_timeout = options.processing.timeout;
  flow.dead_letters = options.dead_letter.has_value();
  flow.letters_apart = !LettersInTransaction(options);
  flow.max_consecutive = options.max_consecutive();
  flow.stall_after = options.processing.stall_after;
  flow.max_in_flight = static_cast<std::size_t>(options.processing.max_in_flight);
  flow.max_in_flight_bytes = options.processing.max_in_flight_bytes;
  flow.lock_wait = options.lock.wait;
  flow.remember_done = options.lock.lock.remember_done;
  flow.block = LockBlock(options);
  if (options.ledger_keep) flow.ledger_row_lifetime = Millis(*options.ledger_keep) / 2;
  flow.commit_interval = options.kafka.commit_interval;
  if (const auto* kafka = std::get_if<KafkaOutputOptions>(&options.output)) {
    flow.order = Order::kPartition;  // a transaction holds a prefix of each partition
    flow.write_batch = static_cast<std::size_t>(kafka->max_records);
    flow.writes_out = 1;
    flow.linger = kafka->linger;
  } else if (const auto* postgres = std::get_if<PostgresOptions>(&options.output)) {
    flow.write_batch = static_cast<std::size_t>(postgres->max_records);
  } else if (const auto* mysql = std::get_if<MysqlOptions>(&options.output)) {
    flow.write_batch = static_cast<std::size_t>(mysql->max_records);
  } else if (const auto* sqlite = std::get_if<SqliteOptions>(&options.output)) {
    flow.write_batch = static_cast<std::size_t>(sqlite->max_records);
  }
  return flow;
}

}  // namespace fencepost::consumer
