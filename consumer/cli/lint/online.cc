#include "consumer/cli/lint/online.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <future>
#include <memory>
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
#include "consumer/pipeline/route.h"

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
      : file(loaded), limit(most), findings(loaded.sources) {}
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

// To be asked, once its brokers have answered.
struct Cluster {
  std::string id;
  std::unique_ptr<TopicReader> reader;
  std::unique_ptr<consumer::KafkaAdmin> admin;
};

// `section`: of the file, that says how it is reached.
std::optional<Cluster> Reach(OnlineLint& lint, const consumer::KafkaOptions& kafka,
                             std::string_view section) {
  const auto fail = [&](std::string_view key, const fencepost::Error& error) {
    lint.Error(key, error.Line());
    return std::nullopt;
  };
  auto reader = TopicReader::Make(kafka);
  if (!reader) return fail(section, reader.error());
  auto id = (*reader)->ClusterId(lint.limit);
  if (!id) return fail(fmt::format("{}.brokers", section), id.error());
  auto admin = consumer::KafkaAdmin::Make(kafka);
  if (!admin) return fail(section, admin.error());
  return Cluster{std::move(*id), std::move(*reader), std::move(*admin)};
}

// A topic that is written to: whether it is there (the right to write shows only when something is
// written), and what becomes of the records' times and keys in it, which an output has from the
// topics that are read. A role that may not describe settings does not learn that.
struct TargetLint {
  OnlineLint& lint;
  const Cluster& at;      // that has it
  const Cluster& source;  // of `sources`
  std::string_view key;   // of the file
  const std::string& topic;
  const std::vector<std::string>& sources;  // that are read
  bool letters = false;
  consumer::TopicRules to{};

  void Check() {
    if (const auto ranges = at.reader->Ranges(topic, lint.limit); !ranges) {
      const bool missing = ranges.error().code == "unknown_topic";
      return lint.Error(
          key, missing ? fmt::format("topic '{}' does not exist; create it, workers do not", topic)
                       : Text(fmt::format("topic '{}'", topic), ranges.error()));
    }
    const auto rules = at.admin->RulesOf(topic, lint.limit);
    if (!rules) return;
    to = *rules;
    if (letters) {
      if (to.retention && !to.own_time) TellRetention("its dead letter");
      if (to.compacted) {
        Tell(
            "is compacted (cleanup.policy): it takes no dead letter without a key, and keeps the "
            "last one of each key alone; set cleanup.policy=delete");
      }
      return;
    }
    for (const std::string& name : sources) {
      if (CheckAgainst(name)) return;
    }
  }

 private:
  void Tell(std::string_view what) { lint.Warning(key, fmt::format("topic '{}' {}", topic, what)); }
  void TellRetention(std::string_view what) {
    Tell(
        fmt::format("keeps records for {} (retention.ms) from the time of the record, which {} "
                    "keeps: those of older records are deleted at once; set retention.ms=-1{}, or "
                    "message.timestamp.type=LogAppendTime",
                    config::DurationText(*to.retention), what,
                    letters ? " and delete with `fencepost dlq purge`" : ""));
  }
  void TellBound(consumer::Millis bound, std::string_view what, std::string_view setting) {
    Tell(
        fmt::format("takes no record whose time is more than {} {} ({}), and its output has the "
                    "time of the record: raise it, or set message.timestamp.type=LogAppendTime",
                    config::DurationText(bound), what, setting));
  }

  // False: nothing to be told of the records of this one.
  bool CheckAgainst(const std::string& name) {
    const auto from = source.admin->RulesOf(name, lint.limit);
    const auto ranges = source.reader->Ranges(name, lint.limit);
    if (!from || !ranges) return false;
    const auto less = [](const auto& bound, const auto& than) {
      return bound && (!than || *bound < *than);
    };
    const bool deleted = !to.own_time && (less(to.retention, from->retention) ||
                                          (to.retention && Older(*ranges, *to.retention)));
    const bool refused =
        less(to.before, from->retention) || (to.before && Older(*ranges, *to.before));
    const bool early = less(to.after, from->after) && !from->own_time;
    const bool keyless = to.compacted && KeysAreTaken() && Keyless(*ranges);
    if (deleted) TellRetention("its output");
    if (refused) TellBound(*to.before, "ago", "message.timestamp.before.max.ms");
    if (early) TellBound(*to.after, "ahead", "message.timestamp.after.max.ms");
    if (keyless) {
      Tell(
          fmt::format("is compacted (cleanup.policy) and takes no record without a key, as those "
                      "of topic '{}' are: give {}.key",
                      name, key == "output.kafka.records" ? key : "output.kafka"));
    }
    return deleted || refused || early || keyless;
  }

  [[nodiscard]] bool KeysAreTaken() const {
    const auto* kafka = std::get_if<consumer::KafkaOutputOptions>(&lint.options().output);
    return std::ranges::any_of(consumer::RecordsOf(*kafka),
                               [&](const consumer::KafkaRecord& record) {
                                 const auto names = consumer::NamesOf(record.topic, record.route);
                                 return record.key.kind == consumer::Selector::Kind::kKey &&
                                        std::ranges::find(names, topic) != names.end();
                               });
  }
  bool Older(const std::vector<PartitionRange>& ranges, consumer::Millis than) {
    const auto now = locking::ReadClocks().wall.time_since_epoch();
    const auto all = source.reader->Since(ranges, consumer::Millis(0), lint.limit);
    const auto young =
        source.reader->Since(ranges, std::max(now - than, consumer::Millis(0)), lint.limit);
    if (!all || !young) return false;
    for (std::size_t i = 0; i < all->size(); ++i) {
      if ((*young)[i].first > (*all)[i].first) return true;
    }
    return false;
  }
  // The newest record of a partition is.
  bool Keyless(const std::vector<PartitionRange>& ranges) {
    for (const PartitionRange& range : ranges) {
      if (range.end <= range.first) continue;
      const auto read = source.reader->ReadOne(range.where, range.end - 1, lint.limit);
      if (read && *read) return !(*read)->record.key;
    }
    return false;
  }
};

// Its members that are there agree on one way to share partitions. Who may not describe groups
// learns nothing here.
void LintGroup(OnlineLint& lint, consumer::KafkaAdmin& admin) {
  const std::string& group = lint.options().kafka.group;
  const auto protocol = admin.GroupProtocol(group, lint.limit);
  if (!protocol || protocol->empty() || *protocol == "range") return;
  lint.Warning("kafka.group",
               fmt::format("group '{}' has members of another kind, which share partitions by {}: "
                           "workers do so by range, and wait until those have left; give the "
                           "pipeline a group of its own",
                           group, *protocol));
}

// Those that are read by name, and the first ones of those that patterns match.
std::vector<std::string> TopicsOf(OnlineLint& lint, consumer::KafkaAdmin& admin) {
  constexpr std::size_t kMatchedAreAsked = 10;
  const consumer::ReadTopics read(lint.options().kafka.topics);
  std::vector<std::string> topics = read.names();
  if (read.pattern().empty()) return topics;
  const auto known = admin.Topics(read, lint.limit);
  if (!known) {
    lint.Error("kafka.topics", Text("the topics", known.error()));
    return topics;
  }
  if (known->size() > consumer::kMostTopics) {
    lint.Error("kafka.topics",
               fmt::format("{} topics match, and a pipeline with a pattern reads at most {}: match "
                           "fewer, in several pipelines",
                           known->size(), consumer::kMostTopics));
  }
  std::vector<std::string> matched;
  for (const auto& [name, partitions] : *known) {
    if (read.Matches(name) && !read.Names(name)) matched.push_back(name);
  }
  if (matched.empty()) {
    lint.Warning("kafka.topics", "no topic is there yet that a pattern of kafka.topics matches");
  }
  matched.resize(std::min(matched.size(), kMatchedAreAsked));
  topics.insert(topics.end(), matched.begin(), matched.end());
  return topics;
}

// `cluster`: of `section`, by the file; `reached`: what its clients work by.
void LintTargets(OnlineLint& lint, const Cluster& source, const std::vector<std::string>& topics,
                 std::string_view section, std::string_view name,
                 const std::vector<std::string>& targets, const consumer::ClusterOptions& cluster,
                 const consumer::KafkaOptions& reached) {
  std::optional<Cluster> other;
  if (!cluster.brokers.empty()) {
    other = Reach(lint, reached, section);
    if (!other) return;
    const std::string key = fmt::format("{}.brokers", section);
    if (other->id == source.id) {
      return lint.Error(
          key, fmt::format("{} are the same cluster as kafka.brokers: leave them out", key));
    }
  }
  const std::string key = fmt::format("{}.{}", section, name);
  for (const std::string& topic : targets) {
    TargetLint{lint, other ? *other : source, source, key, topic, topics, section == "dead_letter"}
        .Check();
  }
}

// Brokers, login, topics, group, dead letters.
void LintBrokers(OnlineLint& lint) {
  const consumer::PipelineOptions& options = lint.options();
  const consumer::KafkaOptions& kafka = options.kafka;
  const auto cluster = Reach(lint, kafka, "kafka");
  if (!cluster) return;
  TopicReader& reader = *cluster->reader;
  std::optional<consumer::TopicPartition> any;
  const std::vector<std::string> topics = TopicsOf(lint, *cluster->admin);
  for (const std::string& topic : topics) {
    const auto ranges = LintTopic(lint, reader, topic);
    if (ranges && !ranges->empty()) any = ranges->front().where;
  }
  if (any) {
    const auto committed = reader.Committed(kafka.group, {*any}, lint.limit);
    if (!committed) {
      lint.Error("kafka.group", Text(fmt::format("group '{}'", kafka.group), committed.error()));
    }
  }
  LintGroup(lint, *cluster->admin);
  if (const auto& letters = options.dead_letter) {
    LintTargets(lint, *cluster, topics, "dead_letter", "topic", {letters->topic}, letters->cluster,
                LetterCluster(options));
  }
  if (const auto* to = std::get_if<consumer::KafkaOutputOptions>(&options.output)) {
    LintTargets(lint, *cluster, topics, "output.kafka", to->records.empty() ? "topic" : "records",
                consumer::TopicsOf(*to), to->cluster, OutputCluster(options));
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

// Of SQLite.
void LintMissingFile(OnlineLint& lint, fencepost::Error error) {
  const auto& output = std::get<consumer::SqliteOptions>(lint.options().output);
  const auto folder = std::filesystem::absolute(output.path).parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    error.what = "there is no folder for the file";
    error.hint = "make it, or correct output.sqlite.path";
  } else if (access(folder.c_str(), W_OK | X_OK) != 0) {
    error.what += ", and this user may not make one";
    error.hint = "let the worker write into the folder, or correct output.sqlite.path";
    if (output.create) return lint.Warning("output", error.Line());
  } else if (output.create) {
    error.what += " yet";
    error.hint = "output.sqlite.create: a worker makes it at its start, with its tables";
    return lint.Warning("output", error.Line());
  } else {
    error.hint = "fencepost tables apply makes it, with its tables";
  }
  lint.Error("output", error.Line());
}

// Login, tables, columns and types, rights, ledger.
void LintDatabase(OnlineLint& lint) {
  const auto view = LedgerView::Of(lint.options());
  if (view == nullptr) return;
  const auto checked = view->Check(lint.limit);
  for (const std::string& advice : view->Advice()) lint.Warning("output", advice);
  if (checked) return;
  fencepost::Error error = checked.error();
  if (IsMadeAtTheStart(error)) return lint.Warning("output", error.Line());
  if (error.code == kOutputMissing) return LintMissingFile(lint, std::move(error));
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
    if (lock.lock.quarantine) {
      lint.Warning(key,
                   "the lock nodes have no lock store yet: make it by `fencepost locks init`, or "
                   "the first worker makes one that is in quarantine at first");
    }
  } else if (problem) {
    lint.Error(key, problem->Line());
  }
  for (int node = 0; node < view.size(); ++node) {
    const locking::NodeStatus status = view.Status(node);
    const auto tell = [&](const std::string& what) {
      const std::string line =
          fmt::format("lock node {} ({}): {}", locking::NodeLetter(node), view.Address(node), what);
      const bool remark = status.connected && problem && problem->code == "no_store";
      view.store().Available() || remark ? lint.Warning(key, line) : lint.Error(key, line);
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
