#include "config/loader.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "config/lint.h"
#include "config/reader.h"
#include "config/tree.h"
#include "locking/check.h"

namespace fencepost::config {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

std::string Sha256Hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int ok = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  FENCEPOST_CHECK(ok == 1, "SHA-256 is not to be had from OpenSSL");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

// YAML forbids these, and its parser would take them for another encoding.
bool IsPlainText(std::string_view text) {
  const auto is_control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') ||
           c == 0x7f;
  };
  return std::none_of(text.begin(), text.end(), is_control) &&
         simdjson::validate_utf8(text.data(), text.size());
}

consumer::KafkaOptions BuildKafka(const Values& values) {
  consumer::KafkaOptions kafka;
  kafka.brokers = values.Strings("kafka.brokers");
  kafka.topics = values.Strings("kafka.topics");
  kafka.group = values.Given("kafka.group") ? values.String("kafka.group") : values.String("name");
  kafka.start_from = static_cast<consumer::StartFrom>(values.Choice("kafka.start_from"));
  kafka.commit_interval = values.Duration("kafka.commit_interval");
  kafka.tls_ca = values.String("kafka.tls.ca");
  kafka.tls_certificate = values.String("kafka.tls.certificate");
  kafka.tls_key = values.String("kafka.tls.key");
  kafka.sasl_mechanism = values.String("kafka.sasl.mechanism");
  kafka.sasl_username = values.String("kafka.sasl.username");
  kafka.sasl_password = values.String("kafka.sasl.password");
  if (const Entry* settings = values.Find("kafka.librdkafka")) {
    for (const Text& setting : settings->texts) kafka.librdkafka[setting.name] = setting.value;
  }
  return kafka;
}

consumer::LockSection BuildLock(const Values& values) {
  consumer::LockSection section;
  section.lock.ttl = values.Duration("lock.ttl");
  section.lock.min_validity = values.Duration("lock.min_validity");
  section.lock.max_skew = values.Duration("lock.max_skew");
  section.lock.node_timeout = values.Duration("lock.redis.timeout");
  // The default of LockOptions is the one for outputs with a ledger, and all of this build have
  // one.
  if (values.Given("lock.remember_done")) {
    section.lock.remember_done = values.Duration("lock.remember_done");
  }
  section.redis.nodes = values.Strings("lock.redis.nodes");
  section.redis.username = values.String("lock.redis.username");
  section.redis.password = values.String("lock.redis.password");
  section.redis.tls_ca = values.String("lock.redis.tls.ca");
  section.wait = values.Duration("lock.wait");
  return section;
}

consumer::ProcessingOptions BuildProcessing(const Values& values) {
  consumer::ProcessingOptions processing;
  processing.order = static_cast<consumer::Order>(values.Choice("processing.order"));
  processing.concurrency = static_cast<int>(values.Number("processing.concurrency"));
  processing.max_in_flight = static_cast<int>(values.Number("processing.max_in_flight"));
  processing.max_in_flight_bytes =
      static_cast<std::uint64_t>(values.Number("processing.max_in_flight_bytes"));
  processing.timeout = values.Duration("processing.timeout");
  processing.revoke_drain = values.Duration("processing.revoke_drain");
  return processing;
}

std::vector<consumer::Column> BuildColumns(const Values& values, std::string_view path) {
  std::vector<consumer::Column> columns;
  for (const Text& text : values.Find(path)->texts) {
    columns.push_back({.name = text.name, .selector = text.selector});
  }
  return columns;
}

consumer::OutputOptions BuildOutput(const Values& values) {
  if (values.Given("output.postgres")) {
    return consumer::PostgresOptions{.dsn = values.String("output.postgres.dsn"),
                                     .table = values.String("output.postgres.table"),
                                     .columns = BuildColumns(values, "output.postgres.columns"),
                                     .rules = {},
                                     .statement = "",
                                     .args = {}};
  }
  return consumer::SqliteOptions{.path = values.String("output.sqlite.path"),
                                 .table = values.String("output.sqlite.table"),
                                 .columns = BuildColumns(values, "output.sqlite.columns"),
                                 .rules = {}};
}

consumer::OnBad BuildOnBad(const Values& values, std::string_view path) {
  const bool skip = values.Find(path) != nullptr && values.String(path) == "skip";
  return skip ? consumer::OnBad::kSkip : consumer::OnBad::kStop;
}

consumer::PipelineOptions Build(const Values& values) {
  consumer::PipelineOptions options;
  options.name = values.String("name");
  options.guarantee = static_cast<consumer::Guarantee>(values.Choice("guarantee"));
  options.kafka = BuildKafka(values);
  if (const Entry* id = values.Find("record_id")) options.record_id = id->texts.front().selector;
  options.on_id_conflict = BuildOnBad(values, "on_id_conflict");
  options.on_bad_record = BuildOnBad(values, "on_bad_record");
  options.lock = BuildLock(values);
  options.processing = BuildProcessing(values);
  options.output = BuildOutput(values);
  if (values.Given("ledger.keep")) {
    options.ledger_keep =
        std::chrono::duration_cast<std::chrono::seconds>(values.Duration("ledger.keep"));
  }
  options.observe.http = values.String("observe.http");
  options.observe.log_level = values.String("observe.log.level");
  options.observe.log_format = values.String("observe.log.format");
  options.shutdown_timeout = values.Duration("shutdown_timeout");
  return options;
}

LoadResult Unreadable(const std::string& file, const std::string& why) {
  Findings findings(file);
  findings.Error({}, "file", why);
  return LoadResult{.file = file, .options = {}, .findings = findings.Take(), .name_at = {}};
}

}  // namespace

LoadResult LoadText(std::string_view text, const std::string& file,
                    const Environment& environment) {
  if (text.size() > kMaxFileBytes) return Unreadable(file, "larger than 1 MiB");
  if (!IsPlainText(text)) return Unreadable(file, "not a UTF-8 text without control characters");
  LoadResult result;
  result.file = file;
  Findings findings(file);
  std::optional<Values> values;
  if (const std::optional<Node> root = ParseTree(text, findings)) {
    values = ReadTree(*root, environment, findings);
    Lint(*values, findings);
    result.name_at = values->ValuePlace("name");
  }
  result.findings = findings.Take();
  if (values && !HasErrors(result.findings)) {
    result.options = Build(*values);
    result.options->config_hash = Sha256Hex(text);
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
        file.name_at, "duplicate-pipeline",
        fmt::format("the pipeline name \"{}\" is that of {} too; one process runs a name "
                    "once",
                    file.options->name, other->second->file));
    for (Finding& finding : findings.Take()) all.push_back(std::move(finding));
  }
  return all;
}

}  // namespace fencepost::config
