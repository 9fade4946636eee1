// How clusters are reached: brokers, tls, sasl; kafka.librdkafka.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"
#include "config/schema/checks.h"
#include "config/text/scalar.h"
#include "config/text/suggestion.h"
#include "consumer/kafka/client/settings.h"

namespace fencepost::config {
namespace {

// OAUTHBEARER logs in with a token from sasl.oauth, GSSAPI by sasl.kerberos, AWS_MSK_IAM by what
// AWS gives to a machine, everything else with a password.
void LintLogin(const Values& values, const std::string& section,
               const consumer::ClusterOptions& cluster, Findings& findings) {
  const std::string sasl = section + ".sasl";
  const std::string how = sasl + ".mechanism";
  if (!values.Given(sasl) || values.Wrong(how)) return;
  const std::string mechanism = values.String(how);
  const bool token = mechanism == "OAUTHBEARER";
  const bool iam = mechanism == "AWS_MSK_IAM";
  const bool ticket = mechanism == "GSSAPI";
  const auto missing = [&](const std::string& key, const char* more = "") {
    findings.Error(values.ValuePlace(how), "missing", "{} is missing: {} needs it{}", key,
                   mechanism, more);
  };
  const auto only = [&](bool used, const std::string& key, const std::string& why) {
    if (used == values.Given(key)) return;
    if (used) return missing(key);
    findings.Error(values.KeyPlace(key), "sasl", "{} is not for {}: {}", key, mechanism, why);
  };
  const std::string instead =
      iam ? "it logs in by the credentials that AWS's SDKs find"
          : fmt::format("it logs in by {}.{}", sasl, ticket ? "kerberos" : "oauth");
  const bool password = !token && !iam && !ticket;
  for (const char* key : {".username", ".password"}) only(password, sasl + key, instead);
  only(token, sasl + ".oauth", "it is for OAUTHBEARER");
  only(ticket, sasl + ".kerberos", "it is for GSSAPI");
  if (!iam) only(false, sasl + ".region", "it is for AWS_MSK_IAM");
  if (iam && !values.Wrong(section + ".brokers")) {
    if (!cluster.tls) missing(section + ".tls");
    if (cluster.sasl_region.empty() && !values.Wrong(sasl + ".region")) {
      missing(sasl + ".region",
              ", and neither a broker's name, AWS_REGION nor AWS_DEFAULT_REGION says it");
    }
  }
}

// A consumer that has a pattern is not told of internal topics at all, and finds new topics as
// often as it asks for them.
void LintTopics(const Values& values, Findings& findings) {
  const auto topics = values.Texts("kafka.topics");
  if (std::ranges::none_of(topics, consumer::IsPattern, &Text::value)) return;
  for (const Text& topic : topics) {
    if (!consumer::IsInternalTopic(topic.value)) continue;
    findings.Error(topic.at, "value",
                   "kafka.topics: {} is an internal topic, which is not read beside a pattern",
                   topic.shown);
  }
  constexpr std::string_view kRefresh = "topic.metadata.refresh.interval.ms";
  for (const Text& setting : values.Texts("kafka.librdkafka")) {
    const auto interval = ParseInteger(setting.value);
    if (setting.name != kRefresh || !interval || (*interval >= 1 && *interval <= 60'000)) continue;
    findings.Error(setting.at, "librdkafka",
                   "kafka.librdkafka: {}: a pattern of kafka.topics finds new topics by it: give 1 "
                   "to 60000",
                   kRefresh);
  }
}

// What the protocols before brokers say is what tls, sasl and, of kafka's, librdkafka say.
void LintProtocols(const Values& values, const std::string& section, Findings& findings) {
  const std::string brokers = section + ".brokers";
  const bool tls = values.Given(section + ".tls");
  const bool login = values.Given(section + ".sasl");
  std::string_view first;
  for (const Text& broker : values.Texts(brokers)) {
    const std::string_view protocol = BrokerProtocol(broker.value);
    if (protocol.empty()) continue;
    const auto refuse = [&](std::string_view rule, const std::string& why) {
      findings.Error(broker.at, rule, "{}: {}:// {}", brokers, protocol, why);
    };
    if (!first.empty() && protocol != first) {
      return refuse("tls", fmt::format("and {}://: all brokers are reached in one way", first));
    }
    if (!first.empty()) continue;
    first = protocol;
    for (const Text& setting : values.Texts(section + ".librdkafka")) {
      if (consumer::SettingWithoutPrefix(setting.name) != "security.protocol") continue;
      return refuse("tls", "and kafka.librdkafka's security.protocol: leave one of the two out");
    }
    const bool sasl = protocol.starts_with("SASL");
    const auto one_out = [&](const char* what, const char* key) {
      return fmt::format("{}, and there is {}.{}: leave one of the two out", what, section, key);
    };
    if (tls && !protocol.ends_with("SSL")) return refuse("tls", one_out("is without TLS", "tls"));
    if (sasl && !login) {
      return refuse("missing", fmt::format("logs in, and {}.sasl is missing", section));
    }
    if (!sasl && login) return refuse("sasl", one_out("has no login", "sasl"));
  }
}

void LintConnection(const Values& values, const std::string& section,
                    const consumer::ClusterOptions& cluster, Findings& findings) {
  LintPair(values, section + ".tls.certificate", section + ".tls.key", findings);
  LintLogin(values, section, cluster, findings);
  LintProtocols(values, section, findings);
}

}  // namespace

// Of two keys that need each other, the one that is given alone.
void LintPair(const Values& values, std::string_view first, std::string_view second,
              Findings& findings) {
  for (const auto& [one, other] : {std::pair(first, second), std::pair(second, first)}) {
    if (!values.Given(one) || values.Given(other)) continue;
    findings.Error(values.KeyPlace(one), "missing", "{} is missing: {} needs it", other, one);
  }
}

void LintOtherCluster(const Values& values, const std::string& section,
                      const consumer::ClusterOptions& cluster, Findings& findings) {
  const std::string brokers = section + ".brokers";
  if (!values.Given(brokers)) {
    for (const std::string& key : {section + ".tls", section + ".sasl"}) {
      if (!values.Given(key)) continue;
      findings.Error(values.KeyPlace(key), "missing", "{} is missing: {} needs it", brokers, key);
    }
    return;
  }
  LintConnection(values, section, cluster, findings);
  if (ExactlyOnce(values)) {
    findings.Error(PlaceOfEither(values, "guarantee", brokers), "guarantee",
                   "guarantee: {} cannot keep exactly-once: no transaction spans two clusters; "
                   "write guarantee: at-least-once, or leave {} out",
                   brokers, brokers);
  }
  if (OneCluster(cluster, values.options().kafka)) {
    findings.Error(
        values.ValuePlace(brokers), "cluster",
        "{}: one of kafka.brokers is among them, so it is the same cluster: leave {} out", brokers,
        brokers);
  }
}

void LintKafka(const Values& values, Findings& findings) {
  LintTopics(values, findings);
  LintConnection(values, "kafka", values.options().kafka, findings);
  for (const Text& setting : values.Texts("kafka.librdkafka")) {
    const auto refuses = [&](const consumer::RefusedSetting& refused) {
      return refused.name == consumer::SettingWithoutPrefix(setting.name) &&
             (refused.only_with.empty() || values.Given(refused.only_with));
    };
    const auto all = consumer::RefusedSettings();
    const auto refused = std::find_if(all.begin(), all.end(), refuses);
    if (refused != all.end()) {
      findings.Error(setting.name_at, "librdkafka", "kafka.librdkafka: {} is refused: {}",
                     setting.name, refused->why);
    } else if (const auto problem = consumer::ProblemOfSetting(setting.name, setting.value)) {
      const auto near =
          problem->unknown ? Nearest(setting.name, consumer::SettingNames()) : std::nullopt;
      findings.Error(problem->unknown ? setting.name_at : setting.at, "librdkafka",
                     "kafka.librdkafka: {}{}", problem->text,
                     near ? fmt::format("; did you mean {}?", *near) : "");
    }
  }
}

}  // namespace fencepost::config
