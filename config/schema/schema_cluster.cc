// The rows that say how a cluster is reached: kafka's, and those of outputs on another one.
#include <utility>
#include <variant>

#include "config/schema/checks.h"
#include "config/schema/schema.h"
#include "config/schema/schema_oauth.h"

namespace fencepost::config {
namespace {

using namespace consumer;  // the options

constexpr auto kSource = [](auto& o) { return &o.kafka; };
constexpr auto kOutputOfKafka = [](auto& o) { return std::get_if<KafkaOutputOptions>(&o.output); };
constexpr auto kLetters = [](auto& o) { return o.dead_letter ? &*o.dead_letter : nullptr; };

// Without the protocols before them, which say `tls`.
template <typename Cluster>
Target Brokers(Cluster cluster) {
  Target target = At(cluster, &ClusterOptions::brokers);
  target.store = [cluster](const Given& given, PipelineOptions& o) {
    auto* const to = cluster(o);
    if (to == nullptr) return;
    to->brokers.clear();
    for (const Text& text : given.texts) {
      const std::string_view protocol = BrokerProtocol(text.value);
      if (protocol.ends_with("SSL")) to->tls = true;
      to->brokers.push_back(text.value.substr(protocol.empty() ? 0 : protocol.size() + 3));
    }
  };
  return target;
}

// Of the section at `path`; `cluster` reaches its options. The brokers come first.
template <typename Cluster>
std::vector<Key> ClusterKeys(const std::string& path, std::string_view brokers, Cluster cluster) {
  const KeysOf of(path, cluster);
  const KeysOf kerberos(path + ".sasl.kerberos", Reach(cluster, &ClusterOptions::kerberos));
  const KeysOf oauth(path + ".sasl.oauth", Reach(cluster, &ClusterOptions::oauth));
  std::vector<Key> keys = {
      of("brokers", Brokers(cluster), brokers, {.check = CheckBroker, .by_commas = true}),
      of("tls", &ClusterOptions::tls,
         "Encrypts the connections to the brokers. `{}`: by the system's CAs."),
      of("tls.ca", &ClusterOptions::tls_ca, "File with the certificates that are trusted.",
         {.default_words = "the system's"}),
      of("tls.certificate", &ClusterOptions::tls_certificate,
         "File with the client's certificate; with `key`."),
      of("tls.key", &ClusterOptions::tls_key, "File with the client's key; with `certificate`."),
      of("sasl", "Logs in at the brokers."),
      of("sasl.mechanism", &ClusterOptions::sasl_mechanism, "How to log in.",
         {.choices = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM",
                      "GSSAPI"},
          .required = true}),
      of("sasl.username", &ClusterOptions::sasl_username, "User; of PLAIN and SCRAM."),
      of("sasl.password", &ClusterOptions::sasl_password,
         "Password; of PLAIN and SCRAM. A file is read every two seconds.", {.empty_text = true}),
      of("sasl.region", &ClusterOptions::sasl_region,
         "AWS_MSK_IAM: the region. Credentials come from where AWS's SDKs look for them "
         "(environment, EKS, ECS, EC2 by IMDSv2), but not from profile files.",
         {.default_words = "a broker's name, `AWS_REGION`, `AWS_DEFAULT_REGION`",
          .check = CheckRegion}),
      kerberos("", "GSSAPI: who logs in. Needs Debian's `libsasl2-modules-gssapi-mit`."),
      kerberos("keytab", &KerberosOptions::keytab,
               "File with the client's key, whose first principal logs in. A process has one.",
               {.required = true}),
      kerberos("service", &KerberosOptions::service,
               "The brokers' principals are this, `/` and their host."),
  };
  Append(keys, OauthKeys(oauth,
                         "OAUTHBEARER: tokens come from an OIDC provider by the client credentials "
                         "grant and are renewed before they expire.",
                         "The provider's token endpoint. Its certificate is checked against the "
                         "system's."));
  keys.push_back(
      oauth("extensions", &OauthOptions::extensions,
            "Further values for the broker, as `NAME=VALUE,…` (such as logicalCluster)."));
  return keys;
}

std::vector<Key> LikeKafka(const std::string& path, std::vector<Key> keys) {
  for (Key& key : keys) {
    if (&key != &keys.front()) key.same_as = "kafka" + key.path.substr(path.size());
  }
  return keys;
}

}  // namespace

std::vector<Key> KafkaClusterKeys() {
  std::vector<Key> keys = ClusterKeys(
      "kafka",
      "Where to find the cluster, each `HOST:PORT`. `SSL://` or `SASL_SSL://` before it is "
      "`tls: {}`; other protocols must agree with `tls` and `sasl`.",
      kSource);
  keys.front().required = keys.front().basic = true;
  return keys;
}

std::vector<Key> OutputClusterKeys() {
  const std::string path = "output.kafka";
  return LikeKafka(
      path,
      ClusterKeys(path,
                  "Of another cluster that has the topic: at least once, with `guarantee: "
                  "at-least-once`. Transactions are there, and offsets move after them. TLS and "
                  "login of `kafka.librdkafka` are not used there.",
                  Reach(kOutputOfKafka, &KafkaOutputOptions::cluster)));
}

std::vector<Key> LetterClusterKeys() {
  const std::string path = "dead_letter";
  return LikeKafka(
      path, ClusterKeys(path,
                        "Of another cluster that has the topic: as `output.kafka.brokers`. A "
                        "letter is acknowledged there before the offset passes its record.",
                        Reach(kLetters, &DeadLetterOptions::cluster)));
}

}  // namespace fencepost::config
