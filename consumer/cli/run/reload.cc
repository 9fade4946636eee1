#include "consumer/cli/run/reload.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/schema/schema.h"

namespace fencepost::cli {
namespace {

using consumer::PipelineOptions;
using Settings = std::vector<std::pair<std::string, std::string>>;

bool Has(const Settings& settings, std::string_view key) {
  return std::ranges::find(settings, key, &Settings::value_type::first) != settings.end();
}

bool OverHttp(const PipelineOptions& options) {
  return std::holds_alternative<consumer::HttpHandlerOptions>(options.handler.kind);
}

}  // namespace

Changes ChangesOf(const PipelineOptions& before, const PipelineOptions& after, bool first_file) {
  Changes changes;
  const bool over_http = OverHttp(before) && OverHttp(after);
  for (const config::Key& key : config::Schema()) {
    const bool given = key.type == config::Type::kSection || Has(before.shown, key.path) ||
                       Has(after.shown, key.path);
    if (!given || !key.to.same || key.to.same(before, after)) continue;
    const bool live = key.reload == config::Reload::kLive ||
                      (key.reload == config::Reload::kLiveOverHttp && over_http);
    auto& kind = live ? changes.applied : changes.refused;
    (key.of_process && !first_file ? changes.ignored : kind).push_back(key.path);
  }
  return changes;
}

void TakeOver(const Changes& changes, const PipelineOptions& fresh, PipelineOptions& running) {
  for (const std::string& key : changes.applied) {
    config::FindKey(key)->to.take(fresh, running);
    std::erase_if(running.shown, [&](const auto& setting) { return setting.first == key; });
    std::ranges::copy_if(fresh.shown, std::back_inserter(running.shown),
                         [&](const auto& setting) { return setting.first == key; });
  }
}

std::string Changes::Text() const {
  std::string text;
  const auto add = [&](const std::vector<std::string>& keys, const char* one, const char* many) {
    if (keys.empty()) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", fmt::join(keys, ", "),
                        keys.size() == 1 ? one : many);
  };
  add(applied, "is applied", "are applied");
  add(refused, "needs a restart", "need a restart");
  add(ignored, "counts in the first file only", "count in the first file only");
  return text.empty() ? "nothing has changed" : text;
}

}  // namespace fencepost::cli
