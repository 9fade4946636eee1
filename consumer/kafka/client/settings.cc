#include "consumer/kafka/client/settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/kafka/client/logins.h"
#include "consumer/pipeline/read_topics.h"

namespace fencepost::consumer {
namespace {

constexpr std::string_view kClientPrefix = "fencepost-";
constexpr char kAt = '@';

// Of a producer: what could not be one request at all is refused by the client, nothing else.
constexpr std::uint64_t kLargestRecord = std::uint64_t{64} << 20;
// One answer of one broker, as it is compressed.
constexpr std::uint64_t kLargestFetch = std::uint64_t{16} << 20;
constexpr std::uint64_t kLeastPrefetch = std::uint64_t{1} << 20;

bool IsConnectionSetting(std::string_view name) {
  for (const std::string_view prefix :
       {"security.", "ssl.", "enable.ssl.", "sasl.", "socket.", "broker.", "reconnect.",
        "client.dns", "api.version", "debug", "metadata.", "connections.", "test.mock"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// How records are gathered, compressed and sent again. What keeps the promises (acks, idempotence,
// transactions) is refused before: kRefused.
bool IsProducerSetting(std::string_view name) {
  for (const std::string_view prefix :
       {"compression.", "linger.ms", "batch.", "queue.buffering.", "message.max.bytes",
        "partitioner", "sticky.partitioning.", "request.timeout.ms", "retry.backoff.ms"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

std::uint64_t Number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

void SetUnlessEmpty(KafkaSettings& settings, const char* name, const std::string& value) {
  if (!value.empty()) settings[name] = value;
}

void SetSecret(KafkaSettings& settings, const char* name, const char* file, const Secret& secret) {
  SetUnlessEmpty(settings, file, secret.path());
  if (secret.path().empty()) SetUnlessEmpty(settings, name, secret.Read().value_or(""));
}

std::optional<SettingProblem> TakeSetting(rd_kafka_conf_t* conf, const std::string& name,
                                          const std::string& value) {
  char why[512];
  const auto result = rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why, sizeof(why));
  if (result == RD_KAFKA_CONF_OK) return std::nullopt;
  if (result == RD_KAFKA_CONF_UNKNOWN) {
    return SettingProblem{true, fmt::format("librdkafka has no setting '{}'", name)};
  }
  constexpr std::string_view kSecrets[] = {"password", "secret", "key", "token", ".config"};
  const bool secret = std::ranges::any_of(
      kSecrets, [&](std::string_view word) { return name.find(word) != std::string::npos; });
  return SettingProblem{false, secret ? fmt::format("librdkafka refuses the value of '{}'", name)
                                      : fmt::format("librdkafka refuses '{}': {}", name, why)};
}

// A connection whose other end went away without a word is closed after 25 s in which it
// acknowledges neither what was sent nor, in silence, three keepalives. (TCP_KEEPCNT does not count
// where there is a TCP_USER_TIMEOUT: with less than 25 s, one lost keepalive would be the end.) The
// kernel's own keepalives begin after two hours, and librdkafka waits for an answer to JoinGroup
// for max.poll.interval.ms and 3 s.
int OpenSocket(int domain, int type, int protocol, void* /*opaque*/) {
  const int fd = socket(domain, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) return fd;
  const auto set = [fd](int option, int value) {
    (void)setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
  };
  set(TCP_KEEPIDLE, 10);
  set(TCP_KEEPINTVL, 5);
  set(TCP_USER_TIMEOUT, 25'000);
  return fd;
}

constexpr RefusedSetting kRefused[] = {
    {"enable.auto.commit", "offsets are committed only once the effect is committed"},
    {"auto.commit.enable", "offsets are committed only once the effect is committed"},
    {"auto.commit.interval.ms",
     "offsets are committed only once the effect is committed; see kafka.commit_interval"},
    {"enable.auto.offset.store", "offsets are stored only once the effect is committed"},
    {"offset.store.method", "offsets are kept by the broker"},
    {"offset.store.path", "offsets are kept by the broker"},
    {"log.queue", "fencepost reads the client's log itself"},
    {"enabled_events", "fencepost sets the events that it reads"},
    {"plugin.library.paths", "plugins are not supported"},
    {"isolation.level", "records of aborted transactions must not be processed"},
    {"auto.offset.reset",
     "a start that was not committed would lose or repeat records; see kafka.start_from"},
    {"enable.partition.eof", "the watermark needs it to pass the holes of transactions"},
    {"partition.assignment.strategy", "only range is safe with this librdkafka"},
    {"group.protocol",
     "only the classic one is supported: offsets and transactions speak for one generation of the "
     "group, and the new one has none"},
    {"group.remote.assignor", "only the classic group protocol is supported"},
    {"transactional.id", "it fences workers, and fencepost chooses it"},
    {"enable.idempotence", "fencepost sets it"},
    {"enable.gapless.guarantee", "fencepost sets it"},
    {"acks", "fencepost sets it"},
    {"request.required.acks", "fencepost sets it"},
    {"allow.auto.create.topics", "workers create no topics"},
    {"topic.blacklist", "kafka.topics says what is read"},
    {"group.id", "write it as kafka.group"},
    {"group.instance.id", "it is the worker's name: write kafka.static_members: true"},
    {"bootstrap.servers", "write it as kafka.brokers"},
    {"metadata.broker.list", "write it as kafka.brokers"},
    {"client.id", "it is the worker's name and observe.advertise"},
    {"security.protocol", "it follows from kafka.tls and kafka.sasl", "kafka.tls"},
    {"security.protocol", "it follows from kafka.tls and kafka.sasl", "kafka.sasl"},
    {"ssl.ca.location", "write it as kafka.tls.ca", "kafka.tls"},
    {"ssl.certificate.location", "write it as kafka.tls.certificate", "kafka.tls"},
    {"ssl.key.location", "write it as kafka.tls.key", "kafka.tls"},
    {"sasl.mechanism", "write it as kafka.sasl.mechanism", "kafka.sasl"},
    {"sasl.mechanisms", "write it as kafka.sasl.mechanism", "kafka.sasl"},
    {"sasl.username", "write it as kafka.sasl.username", "kafka.sasl"},
    {"sasl.password", "write it as kafka.sasl.password", "kafka.sasl"},
    {"sasl.oauthbearer.method", "it follows from kafka.sasl", "kafka.sasl"},
    {"sasl.oauthbearer.token.endpoint.url", "write it as kafka.sasl.oauth.token_url",
     "kafka.sasl.oauth"},
    {"sasl.oauthbearer.client.id", "write it as kafka.sasl.oauth.client_id", "kafka.sasl.oauth"},
    {"sasl.oauthbearer.client.secret", "write it as kafka.sasl.oauth.client_secret",
     "kafka.sasl.oauth"},
    {"sasl.oauthbearer.scope", "write it as kafka.sasl.oauth.scope", "kafka.sasl.oauth"},
    {"sasl.oauthbearer.extensions", "write it as kafka.sasl.oauth.extensions", "kafka.sasl.oauth"},
    {"sasl.kerberos.principal", "the keytab's first principal logs in", "kafka.sasl"},
    {"sasl.kerberos.kinit.cmd", "kinit is not run: kafka.sasl.kerberos has a keytab", "kafka.sasl"},
    {"sasl.kerberos.min.time.before.relogin", "kinit is not run: kafka.sasl.kerberos has a keytab",
     "kafka.sasl"},
    {"sasl.kerberos.keytab", "write it as kafka.sasl.kerberos.keytab", "kafka.sasl"},
    {"sasl.kerberos.service.name", "write it as kafka.sasl.kerberos.service", "kafka.sasl"},
    {"sasl.oauthbearer.config", "it follows from kafka.sasl", "kafka.sasl"},
    {"enable.sasl.oauthbearer.unsecure.jwt", "kafka.sasl logs in by real tokens", "kafka.sasl"},
};

}  // namespace

// A name may have an @, and then one follows it in any case.
std::string ClientIdOf(const MemberName& name) {
  std::string id = std::string(kClientPrefix) + name.worker;
  if (name.advertised.empty() && name.worker.find(kAt) == std::string::npos) return id;
  return id + kAt + name.advertised;
}

MemberName MemberNameIn(std::string_view client_id) {
  MemberName name{.worker = InstanceIdIn(client_id), .advertised = ""};
  name.advertised = client_id.substr(std::min(name.worker.size() + 1, client_id.size()));
  if (name.worker.starts_with(kClientPrefix)) name.worker.erase(0, kClientPrefix.size());
  return name;
}

std::string InstanceIdIn(std::string_view client_id) {
  return std::string(client_id.substr(0, client_id.rfind(kAt)));
}

KafkaSettings ConnectionSettings(const KafkaOptions& options) {
  KafkaSettings settings{{"bootstrap.servers", fmt::format("{}", fmt::join(options.brokers, ","))},
                         {"socket.keepalive.enable", "true"},
                         {"reconnect.backoff.ms", "100"},
                         {"reconnect.backoff.max.ms", "2000"}};
  const bool tls = options.tls || !options.tls_ca.empty() || !options.tls_certificate.empty();
  const bool sasl = !options.sasl_mechanism.empty();
  if (tls || sasl) {
    settings["security.protocol"] = sasl ? (tls ? "sasl_ssl" : "sasl_plaintext") : "ssl";
  }
  SetUnlessEmpty(settings, "ssl.ca.location", options.tls_ca);
  SetUnlessEmpty(settings, "ssl.certificate.location", options.tls_certificate);
  SetUnlessEmpty(settings, "ssl.key.location", options.tls_key);
  if (const KerberosOptions& kerberos = options.kerberos; !kerberos.keytab.empty()) {
    settings["sasl.kerberos.service.name"] = kerberos.service;
    settings["sasl.kerberos.min.time.before.relogin"] = "0";  // no kinit: UseKeytab
  }
  if (options.sasl_mechanism == "AWS_MSK_IAM") {
    settings["sasl.mechanism"] = "OAUTHBEARER";
    settings[kMskSetting] = options.sasl_region;
  } else {
    SetUnlessEmpty(settings, "sasl.mechanism", options.sasl_mechanism);
  }
  SetUnlessEmpty(settings, "sasl.username", options.sasl_username);
  SetSecret(settings, "sasl.password", kPasswordFile, options.sasl_password);
  if (!options.oauth.token_url.empty()) {
    settings[kTokenUrl] = options.oauth.token_url;
    settings[kClientId] = options.oauth.client_id;
    SetSecret(settings, kClientSecret, kClientSecretFile, options.oauth.client_secret);
    settings[kScope] = options.oauth.scope;
    settings[kExtensions] = options.oauth.extensions;
  }
  for (const auto& [name, value] : options.librdkafka) {
    if (IsConnectionSetting(name)) settings[name] = value;
  }
  return settings;
}

void SetSafeReading(KafkaSettings& settings) {
  settings["enable.auto.commit"] = "false";
  settings["enable.auto.offset.store"] = "false";
  settings["auto.offset.reset"] = "error";
  settings["enable.partition.eof"] = "true";
  settings["isolation.level"] = "read_committed";
}

KafkaSettings ProducerSettings(const KafkaOptions& options) {
  KafkaSettings settings = ConnectionSettings(options);
  settings["linger.ms"] = "5";
  settings["partitioner"] = "murmur2_random";  // as the Java clients: the same key, one partition
  // A record that its own producer had compressed may be above the limit of a topic without it.
  settings["compression.type"] = "lz4";
  for (const auto& [name, value] : options.librdkafka) {
    if (!IsProducerSetting(name)) continue;
    settings[name == "compression.codec" ? "compression.type" : name] = value;
  }
  std::string& largest = settings["message.max.bytes"];
  largest = std::to_string(std::max(Number(largest), kLargestRecord));
  return settings;
}

void SetSingles(KafkaSettings& settings, const KafkaOptions& options) {
  settings["batch.num.messages"] = "1";
  const bool chosen = options.librdkafka.contains("compression.type") ||
                      options.librdkafka.contains("compression.codec");
  if (!chosen) settings["compression.type"] = "gzip";  // smaller than lz4 where it matters most
}

KafkaSettings ConsumerSettings(const KafkaOptions& options, const std::string& client_id,
                               std::uint64_t prefetch_bytes) {
  KafkaSettings settings = ConnectionSettings(options);
  // Fetching: an answer as soon as there is a byte, and about a second of records ahead. The limits
  // count the one queue that all partitions share; an answer that is under way comes on top.
  settings["fetch.wait.max.ms"] = "100";
  settings["fetch.error.backoff.ms"] = "100";
  settings["queued.min.messages"] = "100000";
  settings["queued.max.messages.kbytes"] =
      std::to_string(std::max(prefetch_bytes, kLeastPrefetch) / 1024);
  settings["fetch.max.bytes"] = std::to_string(kLargestFetch);
  // A topic that is created later, and new partitions, are seen after at most this time.
  settings["topic.metadata.refresh.interval.ms"] = "10000";
  // A member that died stops its whole group for so long at the next rebalance. Heartbeats are sent
  // by a thread of their own, so work does not hold them up.
  settings["session.timeout.ms"] = "15000";
  settings["statistics.interval.ms"] = "0";
  for (const auto& [name, value] : options.librdkafka) {
    if (!IsProducerSetting(name) || name == "message.max.bytes") settings[name] = value;
  }
  const auto largest = options.librdkafka.find("message.max.bytes");
  if (largest != options.librdkafka.end() && Number(largest->second) > kLargestFetch &&
      !options.librdkafka.contains("fetch.max.bytes")) {
    settings.erase("fetch.max.bytes");  // then librdkafka makes it as large
  }
  const bool patterns = std::ranges::any_of(options.topics, IsPattern);
  if (patterns) settings["topic.blacklist"] = "^__";  // the internal ones: IsInternalTopic
  settings["group.id"] = options.group;
  settings["client.id"] = client_id;
  if (options.static_members) settings["group.instance.id"] = InstanceIdIn(client_id);
  SetSafeReading(settings);
  settings["partition.assignment.strategy"] = "range";
  settings["log.queue"] = "true";
  return settings;
}

tl::expected<void, Error> CheckKafkaOptions(const KafkaOptions& options) {
  const auto bad = [](std::string what, std::string where, std::string hint) {
    return tl::unexpected(Error{"bad_config", std::move(what), std::move(where), std::move(hint)});
  };
  if (options.brokers.empty()) {
    return bad("no brokers are given", "kafka.brokers", "list at least one HOST:PORT");
  }
  if (options.group.empty()) return bad("no group is given", "kafka.group", "name the group");
  if (options.topics.empty()) {
    return bad("no topics are given", "kafka.topics", "list at least one topic");
  }
  const bool patterns = std::ranges::any_of(options.topics, IsPattern);
  for (const std::string& topic : options.topics) {
    const std::string problem = IsPattern(topic) ? ProblemOfPattern(topic) : "";
    if (topic.empty() || !problem.empty() || (patterns && IsInternalTopic(topic))) {
      return bad(fmt::format("'{}' is not a topic to be read", topic), "kafka.topics",
                 problem.empty() ? "list names, internal ones not beside a pattern" : problem);
    }
  }
  for (const auto& [name, value] : options.librdkafka) {
    if (const auto why = WhySettingRefused(name)) {
      return bad(fmt::format("'{}' cannot be set", name), "kafka.librdkafka", std::string(*why));
    }
  }
  return {};
}

std::optional<SettingProblem> ProblemOfSetting(const std::string& name, const std::string& value) {
  const rdkafka::Conf conf(rd_kafka_conf_new());
  return TakeSetting(conf.get(), name, value);
}

std::vector<std::string> SettingNames() {
  const rdkafka::Conf conf(rd_kafka_conf_new());
  std::size_t count = 0;  // of names and values
  const char** dump = rd_kafka_conf_dump(conf.get(), &count);
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 1 < count; i += 2) names.emplace_back(dump[i]);
  rd_kafka_conf_dump_free(dump, count);
  return names;
}

tl::expected<rdkafka::Conf, Error> MakeConf(const KafkaSettings& settings) {
  rdkafka::Conf conf(rd_kafka_conf_new());
  for (const auto& [name, value] : settings) {
    if (name.starts_with(kTokenSettings)) continue;
    auto problem = TakeSetting(conf.get(), name, value);
    if (!problem) continue;
    return tl::unexpected(Error{"bad_config", std::move(problem->text), "kafka",
                                "see librdkafka's CONFIGURATION.md for names and values"});
  }
  LoginByToken(conf.get(), settings);
  LoginByFile(conf.get(), settings);
  rd_kafka_conf_set_socket_cb(conf.get(), OpenSocket);
  return conf;
}

tl::expected<rdkafka::Handle, Error> MakeHandle(rd_kafka_type_t type, rdkafka::Conf& conf) {
  char why[512];
  // A producer's default is true: what it asks for is made, by brokers that allow it.
  if (type == RD_KAFKA_PRODUCER)
    rd_kafka_conf_set(conf.get(), "allow.auto.create.topics", "false", nullptr, 0);
  rdkafka::Handle handle(rd_kafka_new(type, conf.get(), why, sizeof(why)));
  if (!handle) return tl::unexpected(Error{"bad_config", why, "kafka", ""});
  (void)conf.release();
  if (auto asks = AskForTokens(handle.get()); !asks) return tl::unexpected(asks.error());
  FollowPasswordFile(handle.get());
  return handle;
}

std::string KafkaClientVersion() { return rd_kafka_version_str(); }

std::span<const RefusedSetting> RefusedSettings() { return kRefused; }

std::optional<std::string_view> WhySettingRefused(std::string_view name) {
  name = SettingWithoutPrefix(name);
  for (const RefusedSetting& refused : kRefused) {
    if (refused.name == name && refused.only_with.empty()) return refused.why;
  }
  return std::nullopt;
}

}  // namespace fencepost::consumer
