#include "config/loader.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "config/build_effects.h"
#include "config/lint/lint.h"
#include "config/read/defaults.h"
#include "config/read/reader.h"
#include "config/read/redacted_settings.h"
#include "config/read/tests_reader.h"
#include "config/read/tree.h"
#include "locking/base/digest.h"

namespace fencepost::config {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

// YAML forbids these, and its parser would take them for another encoding.
bool IsPlainText(std::string_view text) {
  const auto is_control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') ||
           c == 0x7f;
  };
  return std::none_of(text.begin(), text.end(), is_control) &&
         simdjson::validate_utf8(text.data(), text.size());
}

consumer::DecodeOptions BuildDecode(const Values& values) {
  using consumer::RecordFormat;
  consumer::DecodeOptions decode;
  decode.value = static_cast<RecordFormat>(values.Choice("kafka.decode.value"));
  decode.key = static_cast<RecordFormat>(values.Choice("kafka.decode.key"));
  decode.registry = BuildRegistry(values, "kafka.decode.registry");
  return decode;
}

consumer::KafkaOptions BuildKafka(const Values& values) {
  consumer::KafkaOptions kafka;
  kafka.brokers = values.Strings("kafka.brokers");
  kafka.topics = values.Strings("kafka.topics");
  kafka.group = values.Given("kafka.group") ? values.String("kafka.group") : values.String("name");
  kafka.start_from = static_cast<consumer::StartFrom>(values.Choice("kafka.start_from"));
  kafka.commit_interval = values.Duration("kafka.commit_interval");
  kafka.static_members = values.Number("kafka.static_members") != 0;
  kafka.tls_ca = values.String("kafka.tls.ca");
  kafka.tls_certificate = values.String("kafka.tls.certificate");
  kafka.tls_key = values.String("kafka.tls.key");
  kafka.sasl_mechanism = values.String("kafka.sasl.mechanism");
  kafka.sasl_username = values.String("kafka.sasl.username");
  kafka.sasl_password = values.String("kafka.sasl.password");
  kafka.oauth.token_url = values.String("kafka.sasl.oauth.token_url");
  kafka.oauth.client_id = values.String("kafka.sasl.oauth.client_id");
  kafka.oauth.client_secret = values.String("kafka.sasl.oauth.client_secret");
  kafka.oauth.scope = values.String("kafka.sasl.oauth.scope");
  kafka.oauth.extensions = values.String("kafka.sasl.oauth.extensions");
  for (const Text& setting : values.Texts("kafka.librdkafka")) {
    kafka.librdkafka[setting.name] = setting.value;
  }
  kafka.decode = BuildDecode(values);
  return kafka;
}

locking::RedisOptions BuildRedis(const Values& values) {
  locking::RedisOptions redis;
  for (const Text& node : LockNodes(values)) redis.nodes.push_back(node.value);
  redis.username = values.String("lock.redis.username");
  redis.password = values.String("lock.redis.password");
  redis.tls = values.Given("lock.redis.tls");
  redis.tls_ca = values.String("lock.redis.tls.ca");
  redis.tls_certificate = values.String("lock.redis.tls.certificate");
  redis.tls_key = values.String("lock.redis.tls.key");
  redis.tls_server_name = values.String("lock.redis.tls.server_name");
  return redis;
}

consumer::LockSection BuildLock(const Values& values) {
  consumer::LockSection section;
  section.lock.ttl = values.Duration("lock.ttl");
  section.lock.min_validity = values.Duration("lock.min_validity");
  section.lock.max_skew = values.Duration("lock.max_skew");
  section.lock.node_timeout = values.Duration("lock.redis.timeout");
  section.lock.remember_done = values.Duration("lock.remember_done");
  section.lock.contact = LockContact(values);
  section.redis = BuildRedis(values);
  section.wait = values.Duration("lock.wait");
  section.block = values.Number("lock.block");
  section.on_unavailable =
      static_cast<consumer::OnUnavailable>(values.Choice("lock.on_unavailable"));
  return section;
}

consumer::ProcessingOptions BuildProcessing(const Values& values) {
  consumer::ProcessingOptions processing;
  processing.order = values.Given("output.kafka")
                         ? consumer::Order::kPartition
                         : static_cast<consumer::Order>(values.Choice("processing.order"));
  processing.concurrency = static_cast<int>(values.Number("processing.concurrency"));
  processing.max_in_flight = static_cast<int>(MaxInFlight(values));
  processing.max_in_flight_bytes =
      static_cast<std::uint64_t>(values.Number("processing.max_in_flight_bytes"));
  processing.timeout = values.Duration("processing.timeout");
  processing.revoke_drain = values.Duration("processing.revoke_drain");
  processing.stall_after = values.Duration("processing.stall_after");
  return processing;
}

consumer::RetryOptions BuildRetry(const Values& values) {
  consumer::RetryOptions retry;
  retry.attempts = static_cast<int>(values.Number("retry.attempts"));
  retry.give_up_after = values.Duration("retry.give_up_after");
  retry.initial = values.Duration("retry.backoff.initial");
  retry.max = values.Duration("retry.backoff.max");
  retry.multiplier = static_cast<double>(values.Number("retry.backoff.multiplier")) / 1000;
  retry.jitter = static_cast<consumer::Jitter>(values.Choice("retry.backoff.jitter"));
  retry.never = values.Strings("retry.never");
  return retry;
}

consumer::IdentityRule BuildIdentity(const Values& values) {
  consumer::IdentityRule identity;
  if (values.Find("record_id") != nullptr) identity.record_id = values.Selectors("record_id");
  using Kind = consumer::ContentRule::Kind;
  if (values.IsList("id_content")) {
    identity.content = {.kind = Kind::kSelectors, .selectors = values.Selectors("id_content")};
  } else if (values.String("id_content") == "none") {
    identity.content.kind = Kind::kNone;
  }
  identity.accept_replay_ids = values.Number("kafka.accept_replay_ids") != 0;
  return identity;
}

// `otherwise`: where neither the key nor a dead_letter section is given.
consumer::OnBad BuildOnBad(const Values& values, std::string_view path, consumer::OnBad otherwise) {
  if (DeadLetters(values, path)) return consumer::OnBad::kDeadLetter;
  if (values.Find(path) == nullptr) return otherwise;
  return values.String(path) == "skip" ? consumer::OnBad::kSkip : consumer::OnBad::kStop;
}

consumer::PipelineOptions Build(const Values& values) {
  consumer::PipelineOptions options;
  options.name = values.String("name");
  options.guarantee = static_cast<consumer::Guarantee>(values.Choice("guarantee"));
  options.kafka = BuildKafka(values);
  options.identity = BuildIdentity(values);
  options.on_id_conflict = BuildOnBad(values, "on_id_conflict", consumer::OnBad::kSkip);
  options.on_bad_record = BuildOnBad(values, "on_bad_record", consumer::OnBad::kStop);
  options.lock = BuildLock(values);
  options.processing = BuildProcessing(values);
  options.handler = BuildHandler(values);
  options.retry = BuildRetry(values);
  if (values.Given("dead_letter")) {
    options.dead_letter = consumer::DeadLetterOptions{
        .topic = values.String("dead_letter.topic"),
        .max_consecutive = static_cast<std::size_t>(values.Number("dead_letter.max_consecutive"))};
  }
  options.output = BuildOutput(values);
  if (values.Given("ledger.keep") && values.Duration("ledger.keep") != kForever) {
    options.ledger_keep =
        std::chrono::duration_cast<std::chrono::seconds>(values.Duration("ledger.keep"));
  }
  options.observe.http = values.String("observe.http");
  options.observe.control = static_cast<consumer::ControlAccess>(values.Choice("observe.control"));
  options.observe.control_token = values.String("observe.control_token");
  options.observe.log_level = values.String("observe.log.level");
  options.observe.log_format = values.String("observe.log.format");
  options.shutdown_timeout = values.Duration("shutdown_timeout");
  return options;
}

LoadResult Unreadable(const std::string& file, const std::string& why) {
  Findings findings(file);
  findings.Error({}, "file", why);
  LoadResult result;
  result.file = file;
  result.findings = findings.Take();
  return result;
}

}  // namespace

Place LoadResult::PlaceOf(std::string_view path) const {
  for (;; path = path.substr(0, path.rfind('.'))) {
    if (const auto found = places.find(path); found != places.end()) return found->second;
    if (path.find('.') == std::string_view::npos) return {};
  }
}

LoadResult LoadText(std::string_view text, const std::string& file,
                    const Environment& environment) {
  if (text.size() > kMaxFileBytes) return Unreadable(file, "larger than 1 MiB");
  if (!IsPlainText(text)) return Unreadable(file, "not a UTF-8 text without control characters");
  LoadResult result;
  result.file = file;
  Findings findings(file);
  std::optional<Values> values;
  const std::optional<Node> root = ParseTree(text, findings);
  if (root) {
    values = ReadTree(*root, environment, findings);
    Lint(*values, findings);
    result.tests = ReadTests(*values, environment, findings);
    result.places = values->Places();
  }
  result.findings = findings.Take();
  if (values && !HasErrors(result.findings)) {
    Findings advice(file);
    Advise(*values, advice);
    result.advice = advice.Take();
    result.options = Build(*values);
    result.options->config_hash = Sha256Hex(text);
    result.options->shown = RedactedSettings(*values);
  } else {
    result.tests.clear();
  }
  return result;
}

LoadResult Load(const std::string& path, const Environment& environment) {
  const auto text = environment.read_file(path);
  if (!text) return Unreadable(path, text.error());
  return LoadText(*text, path, environment);
}

std::vector<Finding> CheckTogether(std::span<const LoadResult> files) {
  std::map<std::string, const LoadResult*> first;
  std::vector<Finding> all;
  for (const LoadResult& file : files) {
    if (!file.options) continue;
    const auto [other, is_new] = first.emplace(file.options->name, &file);
    if (is_new) continue;
    Findings findings(file.file);
    findings.Error(
        file.PlaceOf("name"), "duplicate-pipeline",
        fmt::format("the pipeline name \"{}\" is that of {} too; one process runs a name "
                    "once",
                    file.options->name, other->second->file));
    for (Finding& finding : findings.Take()) all.push_back(std::move(finding));
  }
  return all;
}

}  // namespace fencepost::config
