#include "consumer/worker/worker_parts.h"

#include <algorithm>
#include <utility>

#include "consumer/decode/registry/registry_decoder.h"
#include "consumer/kafka/log_identity/log_reader.h"
#include "locking/base/check.h"

namespace fencepost::consumer {

std::unique_ptr<Output> MakeOutput(const PipelineOptions& options, const std::string& worker,
                                   GroupMetadataOf group_metadata) {
  OutputTerms terms{.exactly_once = options.guarantee == Guarantee::kExactlyOnce,
                    .keep = options.ledger_keep,
                    .group = options.kafka.group,
                    .clock = {},
                    .by_position = options.identity.ByPosition()};
  if (terms.by_position) terms.read_log = MakeReadLog(options.kafka);
  if (const auto* postgres = std::get_if<PostgresOptions>(&options.output)) {
    return MakePostgresOutput(*postgres, options.name, worker, terms);
  }
  if (const auto* mysql = std::get_if<MysqlOptions>(&options.output)) {
    return MakeMysqlOutput(*mysql, options.name, worker, terms);
  }
  if (const auto* sqlite = std::get_if<SqliteOptions>(&options.output)) {
    return MakeSqliteOutput(*sqlite, options.name, worker, terms);
  }
  if (const auto* kafka = std::get_if<KafkaOutputOptions>(&options.output)) {
    return MakeKafkaOutput(options.kafka, *kafka,
                           options.dead_letter ? options.dead_letter->topic : "", options.name,
                           worker, std::move(group_metadata));
  }
  if (const auto* file = std::get_if<FileOptions>(&options.output)) {
    return MakeFileOutput(*file, worker);
  }
  const auto* to_stdout = std::get_if<StdoutOptions>(&options.output);
  FENCEPOST_CHECK(to_stdout != nullptr, "a pipeline without an output passed the loader");
  return MakeStdoutOutput(*to_stdout, worker);
}

SourceExtras SourceExtrasOf(const PipelineOptions& options, const std::string& worker) {
  SourceExtras extras;
  if (FinalityOf(options.output) == Finality::kLedger) {
    // By a connection of its own: the writer's belongs to its thread. Asked once in a group's life.
    extras.knows_earlier_work = [&options,
                                 &worker](const std::string& topic) -> tl::expected<bool, Error> {
      const auto known = MakeOutput(options, worker, nullptr)->KnowsTopic(topic);
      if (!known) return tl::unexpected(known.error().error);
      return *known;
    };
  }
  extras.decoder = MakeRecordDecoder(options.kafka.decode);
  extras.prefetch_bytes = std::min(extras.prefetch_bytes, options.processing.max_in_flight_bytes);
  return extras;
}

std::optional<PruneScope> PruneScopeOf(const PipelineOptions& options) {
  if (!options.ledger_keep || options.identity.ByPosition()) return std::nullopt;
  return PruneScope{.keep = *options.ledger_keep, .committed = {}, .topics = options.kafka.topics};
}

std::unique_ptr<DeadLetterPublisher> MakeDeadLetterPublisher(const PipelineOptions& options,
                                                             ConsumerObserver* observer,
                                                             DeadLetterPublisher::Outcome outcome,
                                                             DeadLetterPublisher::State state) {
  if (!options.dead_letter || FinalityOf(options.output) == Finality::kTransaction) return nullptr;
  return std::make_unique<DeadLetterPublisher>(options.kafka, *options.dead_letter, options.name,
                                               observer, std::move(outcome), std::move(state));
}

}  // namespace fencepost::consumer
