// From KafkaOptions to librdkafka settings. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

using KafkaSettings = std::map<std::string, std::string>;

// What every client of the cluster needs: brokers, TLS, SASL, and of the passed-through settings
// those that speak of connections.
KafkaSettings ConnectionSettings(const KafkaOptions& options);

// What every reader of a topic needs, set last, so that nothing is skipped or committed unseen:
// nothing is committed by itself, an offset out of range is an error, aborted records are not seen.
void SetSafeReading(KafkaSettings& settings);

// `prefetch_bytes`: SourceExtras.
KafkaSettings ConsumerSettings(const KafkaOptions& options, const std::string& client_id,
                               std::uint64_t prefetch_bytes = std::uint64_t{64} << 20);

// What every producer of a pipeline needs: connections, compression, and of the passed-through
// settings those that speak of producing. The brokers decide what is too large, not the client.
KafkaSettings ProducerSettings(const KafkaOptions& options);

// Makes each record a batch of its own, compressed as far as it goes unless the user has chosen.
void SetSingles(KafkaSettings& settings, const KafkaOptions& options);

// Brokers and topics given, no regular expression, no refused setting. Error: code "bad_config".
tl::expected<void, Error> CheckKafkaOptions(const KafkaOptions& options);

struct SettingProblem {
  bool unknown = false;  // librdkafka has no setting of that name
  std::string text;      // one line; holds no password
};
// nullopt: librdkafka takes it.
std::optional<SettingProblem> ProblemOfSetting(const std::string& name, const std::string& value);
// Of all settings that librdkafka knows.
std::vector<std::string> SettingNames();

// Error: code "bad_config", where the setting's name. Values are never printed (passwords).
tl::expected<rdkafka::Conf, Error> MakeConf(const KafkaSettings& settings);

// Whether librdkafka was built with it: one of its builtin.features, "oidc" for one.
bool KafkaClientHas(std::string_view feature);

// Of librdkafka, at run time: "2.0.2".
std::string KafkaClientVersion();

// Starts a client, which then owns `conf`. Error: code "bad_config".
tl::expected<rdkafka::Handle, Error> MakeHandle(rd_kafka_type_t type, rdkafka::Conf& conf);

}  // namespace fencepost::consumer
