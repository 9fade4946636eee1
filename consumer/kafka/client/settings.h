// From KafkaOptions to librdkafka settings. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
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

// Brokers and topics given, patterns that compile, no refused setting. Error: code "bad_config".
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

// Of librdkafka, at run time: "2.0.2".
std::string KafkaClientVersion();

// A limit as librdkafka takes it.
inline int Ms(Millis limit) { return static_cast<int>(limit.count()); }

// Starts a client, which then owns `conf`, and which creates no topics. Error: code "bad_config".
tl::expected<rdkafka::Handle, Error> MakeHandle(rd_kafka_type_t type, rdkafka::Conf& conf);

// --- client.id
// ------------------------------------------------------------------------------------

// What the members of a group are told of each other, in client.id, as librdkafka lets nobody set a
// member's metadata: a worker's name, and where others reach its port.
struct MemberName {
  std::string worker;
  std::string advertised;  // observe.advertise; empty: there is none
  bool operator==(const MemberName&) const = default;
};

// fencepost-WORKER, or fencepost-WORKER@HOST:PORT.
std::string ClientIdOf(const MemberName& name);
// Any text, as any client may be a member.
MemberName MemberNameIn(std::string_view client_id);

// What of it stays the same for a worker that is reached elsewhere.
std::string InstanceIdIn(std::string_view client_id);

// --- what a pipeline file may not pass through ---------------------------------------------------

// It would break the guarantee, or has a key of its own. One list for lint and for the client.
struct RefusedSetting {
  std::string_view name;
  std::string_view why;
  std::string_view only_with = "";  // refused only where this key of the file is given
};
std::span<const RefusedSetting> RefusedSettings();

// librdkafka takes `topic.NAME` for NAME.
constexpr std::string_view SettingWithoutPrefix(std::string_view name) {
  const bool prefixed = name.starts_with("topic.") && !name.starts_with("topic.metadata.") &&
                        !name.starts_with("topic.blacklist");
  return prefixed ? name.substr(6) : name;
}

// Why a setting is refused whatever else is given; nullopt: it may be set.
std::optional<std::string_view> WhySettingRefused(std::string_view name);

}  // namespace fencepost::consumer
