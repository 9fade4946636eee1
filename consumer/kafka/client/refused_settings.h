// The librdkafka settings that a pipeline file may not pass through, and why: they would break the
// guarantee, or have a key of their own. One list for lint and for the client. No librdkafka here.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace fencepost::consumer {

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
