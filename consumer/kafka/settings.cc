#include "consumer/kafka/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/kafka/refused_settings.h"

namespace fencepost::consumer {
namespace {

bool IsConnectionSetting(std::string_view name) {
  for (const std::string_view prefix :
       {"security.", "ssl.", "enable.ssl.", "sasl.", "socket.", "broker.", "reconnect.",
        "client.dns", "api.version", "debug", "metadata.", "connections.", "test.mock"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

void SetUnlessEmpty(KafkaSettings& settings, const char* name, const std::string& value) {
  if (!value.empty()) settings[name] = value;
}

}  // namespace

KafkaSettings ConnectionSettings(const KafkaOptions& options) {
  KafkaSettings settings{{"bootstrap.servers", fmt::format("{}", fmt::join(options.brokers, ","))},
                         {"socket.keepalive.enable", "true"},
                         {"reconnect.backoff.ms", "100"},
                         {"reconnect.backoff.max.ms", "2000"}};
  const bool tls = !options.tls_ca.empty() || !options.tls_certificate.empty();
  const bool sasl = !options.sasl_mechanism.empty();
  if (tls || sasl) {
    settings["security.protocol"] = sasl ? (tls ? "sasl_ssl" : "sasl_plaintext") : "ssl";
  }
  SetUnlessEmpty(settings, "ssl.ca.location", options.tls_ca);
  SetUnlessEmpty(settings, "ssl.certificate.location", options.tls_certificate);
  SetUnlessEmpty(settings, "ssl.key.location", options.tls_key);
  SetUnlessEmpty(settings, "sasl.mechanism", options.sasl_mechanism);
  SetUnlessEmpty(settings, "sasl.username", options.sasl_username);
  SetUnlessEmpty(settings, "sasl.password", options.sasl_password);
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

KafkaSettings ConsumerSettings(const KafkaOptions& options, const std::string& client_id) {
  KafkaSettings settings = ConnectionSettings(options);
  // Fetching: an answer as soon as there is a byte, and about a second of records ahead. The limits
  // count the one queue that all partitions share.
  settings["fetch.wait.max.ms"] = "100";
  settings["fetch.error.backoff.ms"] = "100";
  settings["queued.min.messages"] = "100000";
  settings["queued.max.messages.kbytes"] = "65536";
  // A topic that is created later, and new partitions, are seen after at most this time.
  settings["topic.metadata.refresh.interval.ms"] = "10000";
  // A member that died stops its whole group for so long at the next rebalance. Heartbeats are sent
  // by a thread of their own, so work does not hold them up.
  settings["session.timeout.ms"] = "15000";
  settings["statistics.interval.ms"] = "0";
  for (const auto& [name, value] : options.librdkafka) settings[name] = value;
  settings["group.id"] = options.group;
  settings["client.id"] = client_id;
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
  for (const std::string& topic : options.topics) {
    if (topic.empty() || topic.front() == '^') {
      return bad(fmt::format("'{}' is not the name of a topic", topic), "kafka.topics",
                 "list the topics by name; patterns are not supported");
    }
  }
  for (const auto& [name, value] : options.librdkafka) {
    if (const auto why = WhySettingRefused(name)) {
      return bad(fmt::format("'{}' cannot be set", name), "kafka.librdkafka", std::string(*why));
    }
  }
  return {};
}

tl::expected<rdkafka::Conf, Error> MakeConf(const KafkaSettings& settings) {
  rdkafka::Conf conf(rd_kafka_conf_new());
  char why[512];
  for (const auto& [name, value] : settings) {
    const auto result =
        rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why, sizeof(why));
    if (result == RD_KAFKA_CONF_OK) continue;
    const bool unknown = result == RD_KAFKA_CONF_UNKNOWN;
    const bool secret = name.find("password") != std::string::npos;
    return tl::unexpected(Error{"bad_config",
                                unknown  ? fmt::format("librdkafka has no setting '{}'", name)
                                : secret ? fmt::format("librdkafka refuses the value of '{}'", name)
                                         : fmt::format("librdkafka refuses '{}': {}", name, why),
                                "kafka", "see librdkafka's CONFIGURATION.md for names and values"});
  }
  return conf;
}

tl::expected<rdkafka::Handle, Error> MakeHandle(rd_kafka_type_t type, rdkafka::Conf& conf) {
  char why[512];
  rdkafka::Handle handle(rd_kafka_new(type, conf.get(), why, sizeof(why)));
  if (!handle) return tl::unexpected(Error{"bad_config", why, "kafka", ""});
  (void)conf.release();
  return handle;
}

}  // namespace fencepost::consumer
