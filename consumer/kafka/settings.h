// From KafkaOptions to librdkafka settings. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/kafka/rdkafka_holders.h"
#include "consumer/options.h"
#include "locking/error.h"

namespace fencepost::consumer {

using KafkaSettings = std::map<std::string, std::string>;

// What every client of the cluster needs: brokers, TLS, SASL, and of the passed-through settings
// those that speak of connections.
KafkaSettings ConnectionSettings(const KafkaOptions& options);

KafkaSettings ConsumerSettings(const KafkaOptions& options, const std::string& client_id);

// Brokers and topics given, no regular expression, no refused setting. Error: code "bad_config".
tl::expected<void, Error> CheckKafkaOptions(const KafkaOptions& options);

// Error: code "bad_config", where the setting's name. Values are never printed (passwords).
tl::expected<rdkafka::Conf, Error> MakeConf(const KafkaSettings& settings);

}  // namespace fencepost::consumer
