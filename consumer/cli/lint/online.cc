#include "consumer/cli/lint/online.h"

#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "config/text/scalar.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/cli/shared/store_view.h"
#include "consumer/decode/registry/registry_client.h"
#include "consumer/encode/record_encoder.h"
#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/topic_reader.h"

namespace fencepost::cli {
namespace {

using consumer::PartitionRange;
using consumer::TopicReader;

// What a part has, and finds. Each finding is at the key that named what was asked.
struct OnlineLint {
  const config::LoadResult& file;
  consumer::Millis limit;
  config::Findings findings;

  OnlineLint(const config::LoadResult& loaded, consumer::Millis most)
      : file(loaded), limit(most), findings(loaded.file) {}
  [[nodiscard]] const consumer::PipelineOptions& options() const { return *file.options; }
  void Error(std::string_view path, std::string message) {
    findings.Error(file.PlaceOf(path), "online", std::move(message));
  }
  void Warning(std::string_view path, std::string message) {
    findings.Warning(file.PlaceOf(path), "online", std::move(message));
  }
};

std::string Text(std::string_view what, const Error& error) {
  return fmt::format("{}: {}{}", what, error.what, error.hint.empty() ? "" : "; " + error.hint);
}

// Whether it is there, and may be read: the newest record of a partition is.
std::optional<std::vector<PartitionRange>> LintTopic(OnlineLint& lint, TopicReader& reader,
                                                     const std::string& topic) {
  const std::string name = fmt::format("topic '{}'", topic);
  const auto ranges = reader.Ranges(topic, lint.limit);
  if (!ranges) {
    const bool missing = ranges.error().code == "unknown_topic";
    lint.Error("kafka.topics",
               missing ? fmt::format("{} does not exist; create it, or correct the name", name)
                       : Text(name, ranges.error()));
    return std::nullopt;
  }
  for (const PartitionRange& range : *ranges) {
    if (range.end <= range.first) continue;
    const auto read = reader.ReadOne(range.where, range.end - 1, lint.limit);
    if (!read) lint.Error("kafka.topics", Text(name + " cannot be read", read.error()));
    break;
  }
  return *ranges;
}

// A topic that is written to. The right to write shows only when something is written.
void LintTarget(OnlineLint& lint, TopicReader& reader, std::string_view key,
                const std::string& topic) {
  const auto ranges = reader.Ranges(topic, lint.limit);
  if (ranges) return;
  if (ranges.error().code == "unknown_topic") {
    lint.Error(key, fmt::format("topic '{}' does not exist; create it, workers do not", topic));
  } else {
    lint.Error(key, Text(fmt::format("topic '{}'", topic), ranges.error()));
  }
}

// "604800000" is 7d.
std::string RetentionText(const std::string& ms) {
  const auto number = config::ParseDuration(ms + "ms");
  return number ? config::DurationText(*number) : ms + " ms";
}

// Dead letters keep the time of their records, and Kafka's retention counts from it. A role that
// may not describe settings learns nothing here.
void LintRetention(OnlineLint& lint, const std::string& topic) {
  const auto admin = consumer::KafkaAdmin::Make(lint.options().kafka);
  if (!admin) return;
  const auto kept = (*admin)->TopicSetting(topic, "retention.ms", lint.limit);
  const auto time = (*admin)->TopicSetting(topic, "message.timestamp.type", lint.limit);
  if (!kept || !time || kept->empty() || *kept == "-1" || *time == "LogAppendTime") return;
  lint.Warning("dead_letter.topic",
               fmt::format("topic '{}' keeps records for {} (retention.ms) from the time of the "
                           "record, which its dead letter keeps: those of older records are "
                           "deleted at once; set retention.ms=-1 and delete with `fencepost dlq "
                           "purge`, or message.timestamp.type=LogAppendTime",
                           topic, RetentionText(*kept)));
}

// Its members that are there agree on one way to share partitions. Who may not describe groups
// learns nothing here.
void LintGroup(OnlineLint& lint) {
  const std::string& group = lint.options().kafka.group;
  const auto admin = consumer::KafkaAdmin::Make(lint.options().kafka);
  if (!admin) return;
  const auto protocol = (*admin)->GroupProtocol(group, lint.limit);
  if (!protocol || protocol->empty() || *protocol == "range") return;
  lint.Warning("kafka.group",
               fmt::format("group '{}' has members of another kind, which share partitions by {}: "
                           "workers do so by range, and wait until those have left; give the "
                           "pipeline a group of its own",
                           group, *protocol));
}

// Brokers, login, topics, group, dead letters.
void LintBrokers(OnlineLint& lint) {
  const consumer::KafkaOptions& kafka = lint.options().kafka;
  const auto made = TopicReader::Make(kafka);
  if (!made) return lint.Error("kafka", made.error().Line());
  TopicReader& reader = **made;
  if (const auto id = reader.ClusterId(lint.limit); !id) {
    return lint.Error("kafka.brokers", id.error().Line());
  }
  std::optional<consumer::TopicPartition> any;
  for (const std::string& topic : kafka.topics) {
    const auto ranges = LintTopic(lint, reader, topic);
    if (ranges && !ranges->empty()) any = ranges->front().where;
  }
  if (any) {
    const auto committed = reader.Committed(kafka.group, *any, lint.limit);
    if (!committed) {
      lint.Error("kafka.group", Text(fmt::format("group '{}'", kafka.group), committed.error()));
    }
  }
  LintGroup(lint);
  if (lint.options().dead_letter) {
    LintTarget(lint, reader, "dead_letter.topic", lint.options().dead_letter->topic);
    LintRetention(lint, lint.options().dead_letter->topic);
  }
  if (const auto* to = std::get_if<consumer::KafkaOutputOptions>(&lint.options().output)) {
    LintTarget(lint, reader, "output.kafka.topic", to->topic);
  }
}

// Any schema id shows whether the registry answers; nobody needs to have registered it.
void LintRegistries(OnlineLint& lint) {
  const consumer::DecodeOptions& decode = lint.options().kafka.decode;
  if (!decode.registry.url.empty()) {
    consumer::RegistryClient registry(decode.registry);
    if (const auto asked = registry.Fetch(1); !asked && !asked.error().unknown) {
      lint.Error("kafka.decode.registry.url",
                 fmt::format("the schema registry gives no schemas: {}; check its address, user "
                             "and password",
                             asked.error().text));
    }
  }
  const auto* kafka = std::get_if<consumer::KafkaOutputOptions>(&lint.options().output);
  if (kafka == nullptr) return;
  consumer::EncodeOptions encode = kafka->encode;
  if (!encode.key.Needed() && !encode.value.Needed()) return;
  encode.key.register_schema = encode.value.register_schema = false;  // nothing is registered
  consumer::RecordEncoder encoder(encode);
  const auto prepared = encoder.Prepare();
  if (prepared) return;
  const bool will_be = prepared.error().code == consumer::kSchemaMissing &&
                       (kafka->encode.key.register_schema || kafka->encode.value.register_schema);
  if (will_be) return;
  lint.Error(prepared.error().where,
             fmt::format("{}; {}", prepared.error().what,
                         prepared.error().hint.empty() ? "see output.kafka.encode"
                                                       : prepared.error().hint));
}

// Login, table, columns and types, rights, ledger.
void LintDatabase(OnlineLint& lint) {
  const auto view = LedgerView::Of(lint.options());
  if (view == nullptr) return;
  const auto checked = view->Check(lint.limit);
  for (const std::string& advice : view->Advice()) lint.Warning("output", advice);
  if (checked) return;
  fencepost::Error error = checked.error();
  if (error.code == "ledger_missing") return lint.Warning("output", error.Line());
  // The hint is for workers, whose batches wait.
  if (error.code == "output_unavailable") error.hint = "check that it runs, its address and login";
  lint.Error("output", error.Line());
}

// Logins, policies, clocks, the lock store. Where a quorum is there, a node without is a warning:
// workers get over it.
void LintLockNodes(OnlineLint& lint) {
  const consumer::LockSection& lock = lint.options().lock;
  StoreView view({lock.redis, lock.lock}, locking::StoreCreation::kNever);
  constexpr const char* key = "lock.redis.nodes";
  const auto known = [](const locking::NodeStatus& node) {
    return node.open || !node.problem.empty() || (node.connected && !node.sentinel);
  };
  view.WatchUntil([&] { return view.All(known); }, lint.limit);
  const auto problem = view.store().Problem();
  if (problem && problem->code == "no_store") {
    lint.Warning(key,
                 "the lock nodes have no lock store yet: make it by `fencepost locks init`, or the "
                 "first worker makes one that is in quarantine at first");
  } else if (problem) {
    lint.Error(key, problem->Line());
  }
  for (int node = 0; node < view.size(); ++node) {
    const locking::NodeStatus status = view.Status(node);
    const auto tell = [&](const std::string& what) {
      const std::string line =
          fmt::format("lock node {} ({}): {}", locking::NodeLetter(node), view.Address(node), what);
      view.store().Available() ? lint.Warning(key, line) : lint.Error(key, line);
    };
    if (!status.connected || !status.problem.empty()) {
      tell(view.WhyNoAnswer(node));
    } else if (status.clock_offset && std::chrono::abs(*status.clock_offset) > lock.lock.max_skew) {
      lint.Warning("lock.max_skew",
                   fmt::format("lock node {} ({}): its clock is {:+.3f} s off this machine's, more "
                               "than lock.max_skew: let both follow one time server (chrony, NTP)",
                               locking::NodeLetter(node), view.Address(node),
                               static_cast<double>(status.clock_offset->count()) / 1e9));
    }
  }
}

}  // namespace

std::vector<config::Finding> LintOnline(const config::LoadResult& loaded, consumer::Millis limit) {
  constexpr std::array kParts{LintBrokers, LintRegistries, LintDatabase, LintLockNodes};
  std::vector<std::future<std::vector<config::Finding>>> parts;
  for (const auto part : kParts) {
    parts.push_back(std::async(std::launch::async, [&loaded, limit, part] {
      OnlineLint lint(loaded, limit);
      part(lint);
      return lint.findings.Take();
    }));
  }
  std::vector<config::Finding> all;
  for (auto& part : parts) {
    for (config::Finding& finding : part.get()) all.push_back(std::move(finding));
  }
  std::ranges::stable_sort(all, {}, [](const auto& f) { return std::tuple(f.line, f.col); });
  return all;
}

}  // namespace fencepost::cli
