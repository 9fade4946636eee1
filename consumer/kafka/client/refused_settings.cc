#include "consumer/kafka/client/refused_settings.h"

namespace fencepost::consumer {
namespace {

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
    {"group.id", "write it as kafka.group"},
    {"group.instance.id", "it is the worker's name: write kafka.static_members: true"},
    {"bootstrap.servers", "write it as kafka.brokers"},
    {"metadata.broker.list", "write it as kafka.brokers"},
    {"client.id", "it is the worker's name"},
    {"security.protocol", "it follows from kafka.tls and kafka.sasl", "kafka.tls"},
    {"security.protocol", "it follows from kafka.tls and kafka.sasl", "kafka.sasl"},
    {"ssl.ca.location", "write it as kafka.tls.ca", "kafka.tls"},
    {"ssl.certificate.location", "write it as kafka.tls.certificate", "kafka.tls"},
    {"ssl.key.location", "write it as kafka.tls.key", "kafka.tls"},
    {"sasl.mechanism", "write it as kafka.sasl.mechanism", "kafka.sasl"},
    {"sasl.mechanisms", "write it as kafka.sasl.mechanism", "kafka.sasl"},
    {"sasl.username", "write it as kafka.sasl.username", "kafka.sasl"},
    {"sasl.password", "write it as kafka.sasl.password", "kafka.sasl"},
    {"sasl.oauthbearer.method", "it follows from kafka.sasl.oauth", "kafka.sasl.oauth"},
    {"sasl.oauthbearer.token.endpoint.url", "write it as kafka.sasl.oauth.token_url",
     "kafka.sasl.oauth"},
    {"sasl.oauthbearer.client.id", "write it as kafka.sasl.oauth.client_id", "kafka.sasl.oauth"},
    {"sasl.oauthbearer.client.secret", "write it as kafka.sasl.oauth.client_secret",
     "kafka.sasl.oauth"},
    {"sasl.oauthbearer.scope", "write it as kafka.sasl.oauth.scope", "kafka.sasl.oauth"},
    {"sasl.oauthbearer.extensions", "write it as kafka.sasl.oauth.extensions", "kafka.sasl.oauth"},
};

}  // namespace

std::span<const RefusedSetting> RefusedSettings() { return kRefused; }

std::optional<std::string_view> WhySettingRefused(std::string_view name) {
  name = SettingWithoutPrefix(name);
  for (const RefusedSetting& refused : kRefused) {
    if (refused.name == name && refused.only_with.empty()) return refused.why;
  }
  return std::nullopt;
}

}  // namespace fencepost::consumer
