#include "consumer/kafka/client/topic_rules.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace fencepost::consumer {
namespace {

constexpr Millis kDoubt = std::chrono::minutes(1);

std::string Setting(const KafkaSettings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

// -1 and the largest number are without an end.
std::optional<Millis> Lasting(const std::string& text) {
  std::int64_t millis = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), millis);
  const bool number = error == std::errc() && end == text.data() + text.size();
  if (!number || millis < 0 || millis == std::numeric_limits<std::int64_t>::max()) {
    return std::nullopt;
  }
  return Millis(millis);
}

}  // namespace

TopicRules TopicRules::Of(const KafkaSettings& settings) {
  const std::string cleanup = Setting(settings, "cleanup.policy");
  TopicRules rules;
  rules.compacted = cleanup.find("compact") != std::string::npos;
  rules.own_time = Setting(settings, "message.timestamp.type") == "LogAppendTime";
  if (cleanup.find("delete") != std::string::npos) {
    rules.retention = Lasting(Setting(settings, "retention.ms"));
  }
  if (rules.own_time) return rules;
  const auto both = Lasting(Setting(settings, "message.timestamp.difference.max.ms"));
  rules.before = Lasting(Setting(settings, "message.timestamp.before.max.ms"));
  rules.after = Lasting(Setting(settings, "message.timestamp.after.max.ms"));
  if (!rules.before) rules.before = both;
  if (!rules.after) rules.after = both;
  return rules;
}

bool TopicRules::Takes(std::chrono::milliseconds time, std::chrono::milliseconds now) const {
  time = std::max(time, std::chrono::milliseconds(0));
  const bool young = !before || now - time + kDoubt <= *before;
  return young && (!after || time - now + kDoubt <= *after);
}

}  // namespace fencepost::consumer
