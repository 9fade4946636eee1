#include "consumer/worker/worker_parts.h"

#include <algorithm>
#include <array>
#include <thread>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "consumer/decode/registry/registry_decoder.h"
#include "consumer/handlers/exec/exec_runner.h"
#include "consumer/handlers/http/http_runner.h"
#include "consumer/handlers/jq/jq_handler.h"
#include "consumer/handlers/pool_runner.h"
#include "consumer/handlers/take_handler.h"
#include "consumer/kafka/client/settings.h"
#include "consumer/kafka/log_identity/log_reader.h"
#include "consumer/outputs/mysql/mysql_connection.h"
#include "consumer/outputs/postgres/postgres_dsn.h"
#include "consumer/outputs/sqlite/sqlite_connection.h"
#include "consumer/pipeline/read_topics.h"
#include "consumer/pipeline/route.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
// Clang 16 does not deduce it by itself.
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

// As a file names them, by the alternatives of OutputOptions.
constexpr std::array<std::string_view, 7> kOutputKeys = {"",      "postgres", "mysql", "sqlite",
                                                         "kafka", "file",     "stdout"};
static_assert(kOutputKeys.size() == std::variant_size_v<OutputOptions>);

int PoolThreads(int concurrency) {
  const auto hardware = static_cast<int>(std::thread::hardware_concurrency());
  return std::min(concurrency, std::max(hardware, 1));
}

using Checked = tl::expected<void, Error>;
template <typename Made>
Checked OutcomeOf(const Made& made) {
  return made ? Checked() : Checked(tl::unexpect, made.error());
}

// A program over what selectors see of a record.
class JqOfARecord {
 public:
  explicit JqOfARecord(std::unique_ptr<Handler> program) : program_(std::move(program)) {}

  HandlerResult Run(const RecordContext& context) {
    if (context.origin == nullptr && context.value == nullptr) {
      return Run(*context.record, *context.where, context.record_id);
    }
    Record record = *context.record;
    if (context.value != nullptr) record.value = *context.value;
    if (context.origin == nullptr) return Run(record, *context.where, context.record_id);
    record.offset = context.origin->offset;
    return Run(record, {context.where->topic, context.origin->partition}, context.record_id);
  }

 private:
  HandlerResult Run(const Record& record, const TopicPartition& where, std::string_view record_id) {
    return program_->Handle({.record = &record, .where = &where, .record_id = record_id}, {});
  }

  const std::unique_ptr<Handler> program_;
};

class JqFilter final : public RecordFilter {
 public:
  explicit JqFilter(std::unique_ptr<Handler> program) : program_(std::move(program)) {}

  tl::expected<bool, std::string> Matches(const RecordContext& context) override {
    const HandlerResult results = program_.Run(context);
    if (!results) return tl::unexpected(results.error().shown);
    return results->front() == "true";
  }
  [[nodiscard]] std::string WhyNot() const override {
    return "the jq program gives false, null or nothing";
  }

 private:
  JqOfARecord program_;  // one result, true or false
};

class JqValues final : public ValueProgram {
 public:
  explicit JqValues(std::unique_ptr<Handler> program) : program_(std::move(program)) {}

  tl::expected<Values, std::string> Run(const RecordContext& context) override {
    HandlerResult results = program_.Run(context);
    if (!results) return tl::unexpected(results.error().shown);
    return std::move(*results);
  }

 private:
  JqOfARecord program_;
};

// The cluster that is read, which must be another one than `cluster`, where a topic there has the
// name of one that is read.
std::optional<KafkaOptions> SourceBeside(const PipelineOptions& options,
                                         const ClusterOptions& cluster,
                                         const std::vector<std::string>& topics) {
  const ReadTopics read(options.kafka.topics);
  const bool named =
      std::ranges::any_of(topics, [&](const std::string& topic) { return read.Has(topic); });
  if (cluster.brokers.empty() || !named) return std::nullopt;
  return options.kafka;
}

PoolRunner::Make MakeCustom(const CustomHandlerOptions& options) {
  return [make = options.make]() -> tl::expected<std::unique_ptr<Handler>, Error> {
    auto handler = make ? make() : nullptr;
    if (handler) return handler;
    return tl::unexpected(Error{.code = "bad_config",
                                .what = "the program's handler was not made",
                                .where = "CustomHandlerOptions::make",
                                .hint = "it must return a Handler"});
  };
}

}  // namespace

std::unique_ptr<Output> MakeOutput(const PipelineOptions& options, const std::string& worker,
                                   GroupMetadataOf group_metadata, bool look_only) {
  OutputTerms terms{.exactly_once = options.guarantee == Guarantee::kExactlyOnce,
                    .keep = options.ledger_keep,
                    .group = options.kafka.group,
                    .clock = {},
                    .look_only = look_only,
                    .by_position = options.identity.ByPosition(),
                    .filtered = options.filter.any(),
                    .make_filter = MakeRecordFilter};
  if (terms.by_position && !look_only) terms.read_log = MakeReadLog(options.kafka);
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
    return MakeKafkaOutput(OutputCluster(options), *kafka,
                           LettersInTransaction(options) ? options.dead_letter->topic : "",
                           options.name, worker, std::move(group_metadata), OutputJq(),
                           SourceBeside(options, kafka->cluster, TopicsOf(*kafka)));
  }
  if (const auto* file = std::get_if<FileOptions>(&options.output)) {
    return MakeFileOutput(*file, worker);
  }
  const auto* to_stdout = std::get_if<StdoutOptions>(&options.output);
  FENCEPOST_CHECK(to_stdout != nullptr, "a pipeline without an output passed the loader");
  return MakeStdoutOutput(*to_stdout, worker);
}

SourceExtras SourceExtrasOf(const PipelineOptions& options, const std::string& worker) {
  SourceExtras extras{.pipeline = options.name};
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
  // Of a program that does not compile: Worker::Start says so.
  if (auto made = MakeRecordFilter(options.filter); made && *made != nullptr) {
    extras.filter = [filter = std::shared_ptr<RecordFilter>(std::move(*made)),
                     as_original = options.identity.accept_replay_ids](const TopicPartition& where,
                                                                       Record& record) {
      Filter(*filter, as_original, where, record);
    };
  }
  extras.prefetch_bytes = std::min(extras.prefetch_bytes, options.processing.max_in_flight_bytes);
  return extras;
}

tl::expected<std::unique_ptr<RecordFilter>, Error> MakeRecordFilter(const FilterOptions& options) {
  if (!options.all.empty()) return MakeConditionFilter(options.all);
  if (options.program.empty()) return nullptr;
  auto program = JqHandler::Make(options.program, "when");
  if (!program) return tl::unexpected(std::move(program.error()));
  // Only what its first result says counts: no number in it, and no result or error behind it.
  program = JqHandler::Make(
      fmt::format("first(({}\n), null) | . != null and . != false", options.program), "when");
  if (!program) return tl::unexpected(std::move(program.error()));
  return std::make_unique<JqFilter>(std::move(*program));
}

tl::expected<std::unique_ptr<ValueProgram>, Error> MakeValueProgram(const std::string& program) {
  return JqHandler::Make(program, "value").map([](std::unique_ptr<Handler> made) {
    return std::unique_ptr<ValueProgram>(std::make_unique<JqValues>(std::move(made)));
  });
}

JqMakers OutputJq() { return {.filter = MakeRecordFilter, .values = MakeValueProgram}; }

tl::expected<void, Error> CheckFilters(const PipelineOptions& options) {
  Checked checked = OutcomeOf(MakeRecordFilter(options.filter));
  const auto check = [&](const auto& made, const std::string& where) {
    if (!checked) return;
    checked = OutcomeOf(made);
    if (!checked) checked.error().where = where;
  };
  std::visit(
      [&](const auto& output) {
        std::size_t number = 0;
        if constexpr (requires { output.effects; }) {
          for (const Effect& effect : output.effects) {
            check(MakeRecordFilter(effect.when),
                  fmt::format("output.{}.effects: when of the {}. one",
                              kOutputKeys[options.output.index()], ++number));
          }
        } else if constexpr (requires { output.records; }) {
          for (const KafkaRecord& record : output.records) {
            ++number;
            const auto where = [&](const char* key) {
              return fmt::format("output.kafka.records: {} of the {}. one", key, number);
            };
            check(MakeRecordFilter(record.when), where("when"));
            if (!record.program.empty()) {
              check(MakeValueProgram(record.program), where("value.jq"));
            }
          }
        }
      },
      options.output);
  return checked;
}

std::optional<PruneScope> PruneScopeOf(const PipelineOptions& options) {
  if (!options.ledger_keep) return std::nullopt;
  return PruneScope{.keep = *options.ledger_keep, .committed = {}, .topics = options.kafka.topics};
}

std::unique_ptr<DeadLetterPublisher> MakeDeadLetterPublisher(const PipelineOptions& options,
                                                             ConsumerObserver* observer,
                                                             DeadLetterPublisher::Outcome outcome,
                                                             DeadLetterPublisher::State state) {
  if (!options.dead_letter || LettersInTransaction(options)) return nullptr;
  return std::make_unique<DeadLetterPublisher>(
      LetterCluster(options), *options.dead_letter, options.name, observer, std::move(outcome),
      std::move(state),
      SourceBeside(options, options.dead_letter->cluster, {options.dead_letter->topic}));
}

std::unique_ptr<HandlerRunner> MakeHandlerRunner(const HandlerOptions& options,
                                                 const std::string& pipeline, int concurrency,
                                                 ConsumerObserver* observer,
                                                 HandlerRunner::Answered answered) {
  using Made = std::unique_ptr<HandlerRunner>;
  return std::visit(Overloaded{[](std::monostate) -> Made { return nullptr; },
                               [&](const HttpHandlerOptions& http) -> Made {
                                 return std::make_unique<HttpRunner>(http, pipeline, concurrency,
                                                                     observer, std::move(answered));
                               },
                               [&](const ExecHandlerOptions& exec) -> Made {
                                 return std::make_unique<ExecRunner>(exec, pipeline, concurrency,
                                                                     observer, std::move(answered));
                               },
                               [&](const JqHandlerOptions& jq) -> Made {
                                 return std::make_unique<PoolRunner>(
                                     [program = jq.program] { return JqHandler::Make(program); },
                                     PoolThreads(concurrency), observer, std::move(answered));
                               },
                               [&](const TakeHandlerOptions& take) -> Made {
                                 return std::make_unique<PoolRunner>(
                                     [take] { return std::make_unique<TakeHandler>(take); },
                                     PoolThreads(concurrency), observer, std::move(answered));
                               },
                               [&](const CustomHandlerOptions& custom) -> Made {
                                 return std::make_unique<PoolRunner>(MakeCustom(custom),
                                                                     custom.threads, observer,
                                                                     std::move(answered));
                               }},
                    options.kind);
}

tl::expected<void, Error> CheckPrograms(const HandlerOptions& options) {
  if (const auto* jq = std::get_if<JqHandlerOptions>(&options.kind)) {
    return OutcomeOf(JqHandler::Make(jq->program));
  }
  const auto* const http = std::get_if<HttpHandlerOptions>(&options.kind);
  if (http == nullptr) return {};
  const auto body = OutcomeOf(HttpBodyRule::Make(*http));
  return body ? OutcomeOf(HttpResultRule::Make(*http)) : body;
}

tl::expected<void, Error> CheckHandler(const HandlerOptions& options) {
  return std::visit(Overloaded{[](const std::monostate&) { return Checked(); },
                               [&](const HttpHandlerOptions& http) {
                                 const auto programs = CheckPrograms(options);
                                 return programs ? OutcomeOf(HttpTarget::Make(http, "")) : programs;
                               },
                               [&](const ExecHandlerOptions& exec) {
                                 return exec.command.empty()
                                            ? Checked()
                                            : OutcomeOf(FindProgram(exec.command.front()));
                               },
                               [&](const JqHandlerOptions&) { return CheckPrograms(options); },
                               [](const TakeHandlerOptions&) { return Checked(); },
                               [](const CustomHandlerOptions&) { return Checked(); }},
                    options.kind);
}

std::vector<std::pair<std::string, std::string>> LibraryVersions() {
  return {{"librdkafka", KafkaClientVersion()},
          {"libpq", PostgresClientVersion()},
          {"libmariadb", MysqlClientVersion()},
          {"sqlite", SqliteVersion()},
          {"libcurl", curl::Version()}};
}

}  // namespace fencepost::consumer
