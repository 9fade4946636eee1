// kafka.tls, kafka.sasl, kafka.librdkafka.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"
#include "config/schema/checks.h"
#include "config/text/suggestion.h"
#include "consumer/kafka/client/settings.h"

namespace fencepost::config {
namespace {

// OAUTHBEARER logs in with a token from kafka.sasl.oauth, everything else with a password.
void LintLogin(const Values& values, Findings& findings) {
  if (!values.Given("kafka.sasl") || AnyWrong(values, {"kafka.sasl.mechanism"})) return;
  const std::string mechanism = values.String("kafka.sasl.mechanism");
  const bool token = mechanism == "OAUTHBEARER";
  const auto needs = [&](std::string_view key) {
    if (values.Given(key)) return;
    findings.Error(values.ValuePlace("kafka.sasl.mechanism"), "missing",
                   "{} is missing: {} needs it", key, mechanism);
  };
  const auto unused = [&](std::string_view key) {
    if (!values.Given(key)) return;
    findings.Error(values.KeyPlace(key), "sasl", "{} is not for {}: {}", key, mechanism,
                   token ? "it logs in by kafka.sasl.oauth" : "it is for OAUTHBEARER");
  };
  for (const char* key : {"kafka.sasl.username", "kafka.sasl.password"}) {
    token ? unused(key) : needs(key);
  }
  token ? needs("kafka.sasl.oauth") : unused("kafka.sasl.oauth");
  if (token && !consumer::KafkaClientHas("oidc")) {
    findings.Error(values.ValuePlace("kafka.sasl.mechanism"), "sasl",
                   "kafka.sasl.mechanism: OAUTHBEARER needs a librdkafka that was built with OIDC, "
                   "as Debian 13's is; this program has {} without it",
                   consumer::KafkaClientVersion());
  }
}

// A consumer that has a pattern is not told of internal topics at all.
void LintTopics(const Values& values, Findings& findings) {
  const auto topics = values.Texts("kafka.topics");
  if (std::ranges::none_of(topics, consumer::IsPattern, &Text::value)) return;
  for (const Text& topic : topics) {
    if (!consumer::IsInternalTopic(topic.value)) continue;
    findings.Error(topic.at, "value",
                   "kafka.topics: {} is an internal topic, which is not read beside a pattern",
                   topic.shown);
  }
}

// What the protocols before brokers say is what kafka.tls, kafka.sasl and librdkafka say.
void LintProtocols(const Values& values, Findings& findings) {
  std::string_view first;
  for (const Text& broker : values.Texts("kafka.brokers")) {
    const std::string_view protocol = BrokerProtocol(broker.value);
    if (protocol.empty()) continue;
    const auto refuse = [&](std::string_view rule, std::string_view why) {
      findings.Error(broker.at, rule, "kafka.brokers: {}:// {}", protocol, why);
    };
    if (!first.empty() && protocol != first) {
      return refuse("tls", fmt::format("and {}://: all brokers are reached in one way", first));
    }
    if (!first.empty()) continue;
    first = protocol;
    for (const Text& setting : values.Texts("kafka.librdkafka")) {
      if (consumer::SettingWithoutPrefix(setting.name) != "security.protocol") continue;
      return refuse("tls", "and kafka.librdkafka's security.protocol: leave one of the two out");
    }
    const bool sasl = protocol.starts_with("SASL");
    if (values.Given("kafka.tls") && !protocol.ends_with("SSL")) {
      return refuse("tls", "is without TLS, and there is kafka.tls: leave one of the two out");
    }
    if (sasl && !values.Given("kafka.sasl")) {
      return refuse("missing", "logs in, and kafka.sasl is missing");
    }
    if (!sasl && values.Given("kafka.sasl")) {
      return refuse("sasl", "has no login, and there is kafka.sasl: leave one of the two out");
    }
  }
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

void LintKafka(const Values& values, Findings& findings) {
  LintPair(values, "kafka.tls.certificate", "kafka.tls.key", findings);
  LintTopics(values, findings);
  LintLogin(values, findings);
  LintProtocols(values, findings);
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
