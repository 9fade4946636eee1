#include "consumer/cli/run/reload.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fencepost::cli {
namespace {

using consumer::PipelineOptions;
using Settings = std::vector<std::pair<std::string, std::string>>;

bool HttpBoth(const PipelineOptions& before, const PipelineOptions& after) {
  return std::holds_alternative<consumer::HttpHandlerOptions>(before.handler.kind) &&
         std::holds_alternative<consumer::HttpHandlerOptions>(after.handler.kind);
}

// What a running worker takes up: the keys that begin so, where it can, and how.
struct Live {
  std::string_view key;
  bool (*can)(const PipelineOptions& running, const PipelineOptions& fresh);
  void (*take)(const PipelineOptions& fresh, PipelineOptions& running);
};
constexpr std::array<Live, 4> kLive{{
    {"observe.log.level", [](const auto&, const auto&) { return true; },
     [](const auto& fresh, auto& running) { running.observe.log_level = fresh.observe.log_level; }},
    {"retry.", [](const auto&, const auto&) { return true; },
     [](const auto& fresh, auto& running) { running.retry = fresh.retry; }},
    // The processes and threads of other handlers are as many as at the start.
    {"processing.concurrency", HttpBoth,
     [](const auto& fresh, auto& running) {
       running.processing.concurrency = fresh.processing.concurrency;
     }},
    {"handler.http.rate_limit", HttpBoth,
     [](const auto& fresh, auto& running) {
       using consumer::HttpHandlerOptions;
       std::get<HttpHandlerOptions>(running.handler.kind).rate_limit =
           std::get<HttpHandlerOptions>(fresh.handler.kind).rate_limit;
     }},
}};

const Live* LiveOf(std::string_view key) {
  const auto* found =
      std::ranges::find_if(kLive, [&](const Live& live) { return key.starts_with(live.key); });
  return found == kLive.end() ? nullptr : found;
}

// One setting as it is in `from`; gone where that has none.
void TakeSetting(Settings& settings, const Settings& from, const std::string& key) {
  std::erase_if(settings, [&](const auto& setting) { return setting.first == key; });
  for (const auto& setting : from) {
    if (setting.first == key) settings.push_back(setting);
  }
}

bool SecretsDiffer(const PipelineOptions& a, const PipelineOptions& b) {
  const auto headers = [](const PipelineOptions& options) {
    const auto* http = std::get_if<consumer::HttpHandlerOptions>(&options.handler.kind);
    return http == nullptr ? decltype(http->headers)() : http->headers;
  };
  const auto dsn = [](const PipelineOptions& options) {
    const auto* postgres = std::get_if<consumer::PostgresOptions>(&options.output);
    using Login = std::pair<std::string, std::string>;
    return postgres == nullptr ? Login() : Login(postgres->dsn, postgres->password);
  };
  const auto mysql = [](const PipelineOptions& options) {
    const auto* to = std::get_if<consumer::MysqlOptions>(&options.output);
    return to == nullptr ? std::string() : to->password;
  };
  const auto registry = [](const PipelineOptions& options) {
    const auto* kafka = std::get_if<consumer::KafkaOutputOptions>(&options.output);
    return kafka == nullptr ? std::string() : kafka->encode.registry.password;
  };
  return a.kafka.sasl_password != b.kafka.sasl_password ||
         a.observe.control_token != b.observe.control_token ||
         a.kafka.oauth.client_secret != b.kafka.oauth.client_secret ||
         a.kafka.librdkafka != b.kafka.librdkafka ||
         a.kafka.decode.registry.password != b.kafka.decode.registry.password ||
         a.lock.redis.password != b.lock.redis.password || headers(a) != headers(b) ||
         dsn(a) != dsn(b) || mysql(a) != mysql(b) || registry(a) != registry(b);
}

}  // namespace

Changes ChangesOf(const PipelineOptions& before, const PipelineOptions& after) {
  std::map<std::string, std::array<std::string, 2>> settings;
  for (const auto& [key, text] : before.shown) settings[key][0] = text;
  for (const auto& [key, text] : after.shown) settings[key][1] = text;
  Changes changes;
  for (const auto& [key, texts] : settings) {
    if (texts[0] == texts[1]) continue;
    const Live* live = LiveOf(key);
    const bool applied = live != nullptr && live->can(before, after);
    (applied ? changes.applied : changes.refused).push_back(key);
  }
  if (changes.refused.empty() && SecretsDiffer(before, after)) {
    changes.refused.emplace_back("a secret");
  }
  return changes;
}

void TakeOver(const Changes& changes, const PipelineOptions& fresh, PipelineOptions& running) {
  for (const std::string& key : changes.applied) {
    LiveOf(key)->take(fresh, running);
    TakeSetting(running.shown, fresh.shown, key);
  }
}

std::string Changes::Text() const {
  if (applied.empty() && refused.empty()) return "nothing has changed";
  const auto verb = [](const std::vector<std::string>& keys, const char* one, const char* many) {
    return keys.size() == 1 ? one : many;
  };
  std::string text;
  if (!applied.empty()) {
    text = fmt::format("{} {} applied", fmt::join(applied, ", "), verb(applied, "is", "are"));
  }
  if (!refused.empty()) {
    text += fmt::format("{}{} {} a restart", text.empty() ? "" : "; ", fmt::join(refused, ", "),
                        verb(refused, "needs", "need"));
  }
  return text;
}

}  // namespace fencepost::cli
