#include "consumer/cli/dev/dev_options.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "consumer/pipeline/read_topics.h"
#include "consumer/pipeline/route.h"
#include "consumer/testing/stand_in_table.h"

namespace fencepost::cli {
namespace {

using namespace consumer;

constexpr Millis kEnd{2000};

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [text](std::string_view one) { return text.starts_with(one); });
}

// What is left is how records are read and written, not where the brokers are.
void UseKafka(KafkaOptions& kafka, const DevPlaces& places, std::vector<std::string>& notes) {
  if (kafka.decode.Needed()) {
    notes.emplace_back(
        "kafka.decode: records are not decoded, give them as the JSON that a decoder makes of "
        "them");
  }
  KafkaOptions local;
  local.brokers = places.brokers;
  local.topics = std::move(kafka.topics);
  local.group = std::move(kafka.group);
  local.start_from = StartFrom::kEarliest;
  local.commit_interval = kafka.commit_interval;
  local.librdkafka = std::move(kafka.librdkafka);
  std::erase_if(local.librdkafka, [](const auto& setting) {
    return StartsWithAny(setting.first, {"security.", "ssl.", "enable.ssl.", "sasl.", "group.",
                                         "broker.", "client.dns", "client.rack", "test.mock"});
  });
  // With the default of 45 s a group of the mock cluster waits as long for members that are gone.
  local.librdkafka["session.timeout.ms"] = "6000";
  local.librdkafka["heartbeat.interval.ms"] = "500";
  kafka = std::move(local);
}

// What the pattern begins with, and a few ends; empty: none of them is matched.
std::string MatchedBy(const std::string& pattern) {
  std::string begin;
  for (std::size_t i = 1; i < pattern.size(); ++i) {
    const bool escaped = pattern[i] == '\\' && i + 1 < pattern.size();
    if (!escaped && std::string_view("[](){}*+?|.$").find(pattern[i]) != std::string_view::npos)
      break;
    begin += pattern[escaped ? ++i : i];
  }
  const ReadTopics matched{pattern};
  for (const char* end : {"1", "a", "A", "", "-1", ".1", "2026-01-01"}) {
    if (matched.Has(begin + end)) return begin + end;
  }
  return "";
}

void UseLockNode(LockSection& lock, const DevPlaces& places) {
  lock.redis = {.nodes = {places.lock_node}};
}

bool HasStatement(const OutputOptions& output) {
  const auto* postgres = std::get_if<PostgresOptions>(&output);
  return postgres != nullptr && std::ranges::any_of(EffectsOf(*postgres), [](const Effect& effect) {
           return !effect.statement.empty();
         });
}

void UseOutput(OutputOptions& output, const DevPlaces& places, std::vector<std::string>& notes) {
  if (auto* kafka = std::get_if<KafkaOutputOptions>(&output)) {
    notes.emplace_back(
        "output.kafka: this cluster keeps no transactions: another reader sees aborted records");
    if (kafka->encode.key.Needed() || kafka->encode.value.Needed()) {
      notes.emplace_back("output.kafka: keys and values are written as JSON, without a schema");
    }
    kafka->encode = {};
    return;
  }
  if (places.keep_output) {
    std::visit(
        [](auto& own) {
          if constexpr (requires { own.create; }) own.create = true;
        },
        output);
    return;
  }
  if (auto* file = std::get_if<FileOptions>(&output)) {
    file->path = places.folder / "effects.jsonl";
  } else if (auto* lines = std::get_if<StdoutOptions>(&output)) {
    output = FileOptions{places.folder / "effects.jsonl", std::move(lines->columns)};
  } else {
    if (HasStatement(output)) {
      notes.emplace_back(
          "output.postgres: a statement does not run: its arguments are the row; --keep-output "
          "runs it");
    }
    SqliteOptions table = StandInFor(output);
    table.path = places.folder / "effects.db";
    output = std::move(table);
  }
}

}  // namespace

tl::expected<void, std::string> NameTopics(KafkaOptions& kafka) {
  std::vector<std::string> names;
  for (const std::string& entry : kafka.topics) {
    const std::string name = IsPattern(entry) ? MatchedBy(entry) : entry;
    if (name.empty()) return tl::unexpected(entry);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  kafka.topics = std::move(names);
  return {};
}

std::vector<std::string> UseOneCluster(PipelineOptions& file) {
  std::vector<std::string> notes;
  const auto use = [&](std::string& topic, std::string_view section, std::string_view end) {
    const auto& read = file.kafka.topics;
    if (topic.empty() || std::ranges::find(read, topic) == read.end()) return;
    while (std::ranges::find(read, topic) != read.end()) topic += end;
    notes.push_back(
        fmt::format("{}: its topic is {} here, where one cluster has all topics", section, topic));
  };
  auto* const to = std::get_if<KafkaOutputOptions>(&file.output);
  if (to != nullptr && !to->cluster.brokers.empty()) {
    to->cluster = {};
    use(to->topic, "output.kafka", ".out");
    for (KafkaRecord& record : to->records) {
      use(record.topic, "output.kafka.records", ".out");
      if (!record.route) continue;
      use(record.route->name, "output.kafka.records", ".out");
      for (auto& [found, topic] : record.route->of) use(topic, "output.kafka.records", ".out");
    }
  }
  if (auto& letters = file.dead_letter; letters && !letters->cluster.brokers.empty()) {
    letters->cluster = {};
    use(letters->topic, "dead_letter", ".dead");
  }
  return notes;
}

DevPipeline ForDev(PipelineOptions file, const DevPlaces& places) {
  DevPipeline dev{.options = std::move(file), .notes = {}};
  PipelineOptions& options = dev.options;
  UseKafka(options.kafka, places, dev.notes);
  UseLockNode(options.lock, places);
  UseOutput(options.output, places, dev.notes);
  if (std::holds_alternative<HttpHandlerOptions>(options.handler.kind)) {
    dev.notes.emplace_back("handler.http: its url is called, as in the file");
  }
  options.processing.revoke_drain = std::min(options.processing.revoke_drain, kEnd);
  options.shutdown_timeout = std::min(options.shutdown_timeout, 2 * kEnd);
  options.observe = {};
  std::erase_if(options.shown, [](const auto& key) { return key.first.starts_with("observe."); });
  options.observe.log_format = "text";
  return dev;
}

std::vector<LocalServers::Topic> TopicsOf(const PipelineOptions& options) {
  std::vector<LocalServers::Topic> topics;
  const auto add = [&topics](const std::string& name, int partitions) {
    const bool known = std::ranges::find(topics, name, &LocalServers::Topic::name) != topics.end();
    if (!known) topics.push_back({name, partitions});
  };
  for (const std::string& topic : options.kafka.topics) add(topic, kDevPartitions);
  if (options.dead_letter) add(options.dead_letter->topic, 1);
  if (const auto* kafka = std::get_if<KafkaOutputOptions>(&options.output)) {
    for (const std::string& topic : consumer::TopicsOf(*kafka)) add(topic, 1);
  }
  return topics;
}

bool IsReplaced(std::string_view key, bool keep_output) {
  if (StartsWithAny(key, {"kafka.brokers", "kafka.tls", "kafka.sasl", "kafka.decode.registry",
                          "output.kafka.encode.", "output.kafka.brokers", "output.kafka.tls",
                          "output.kafka.sasl", "dead_letter.brokers", "dead_letter.tls",
                          "dead_letter.sasl", "lock.redis", "observe."})) {
    return true;
  }
  if (keep_output || !key.starts_with("output.")) return false;
  key.remove_prefix(std::min(key.find('.', std::string_view("output.").size()), key.size()));
  return StartsWithAny(key, {".dsn", ".host", ".port", ".user", ".password", ".database",
                             ".sslmode", ".tls", ".path"});
}

std::string TargetOf(const OutputOptions& output) {
  const auto target = [](const auto& options) -> std::string {
    if constexpr (requires { options.effects; }) {
      std::vector<std::string> names;
      for (const Effect& effect : EffectsOf(options)) {
        names.push_back(!effect.statement.empty() ? "its statement"
                        : effect.route            ? "the table by " + effect.route->by.Text()
                                                  : effect.table);
      }
      return fmt::format("{}", fmt::join(names, ", "));
    } else if constexpr (requires { options.topic; }) {
      return fmt::format("{}", fmt::join(consumer::TopicsOf(options), ", "));
    } else if constexpr (requires { options.path; }) {
      return options.path;
    } else {
      return "stdout";
    }
  };
  return std::visit(target, output);
}

std::string OutputText(const OutputOptions& output) {
  constexpr std::string_view kKinds[] = {"",       "PostgreSQL, ", "MySQL, ", "SQLite, ",
                                         "topic ", "file ",        ""};
  static_assert(std::size(kKinds) == std::variant_size_v<OutputOptions>);
  return fmt::format("{}{}", kKinds[output.index()], TargetOf(output));
}

}  // namespace fencepost::cli
