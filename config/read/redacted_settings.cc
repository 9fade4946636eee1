#include "config/read/redacted_settings.h"

namespace fencepost::config {
namespace {

// Without the quotes that messages put around it.
std::string Bare(const Text& text) {
  const std::string& shown = text.shown;
  const bool quoted = shown.size() >= 2 && shown.front() == '"' && shown.back() == '"';
  return quoted ? shown.substr(1, shown.size() - 2) : shown;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> RedactedSettings(const Values& values) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const Key& key : Schema()) {
    const Entry* entry =
        key.type == Type::kSection || InTests(key.path) ? nullptr : values.Find(key.path);
    if (entry == nullptr) continue;
    std::string shown = entry->texts.empty() ? "[]" : "";
    for (const Text& text : entry->texts) {
      if (!shown.empty()) shown += ", ";
      if (!text.name.empty()) shown += text.name + ": ";
      shown += key.secret ? "(not shown)" : Bare(text);
    }
    settings.emplace_back(key.path, std::move(shown));
  }
  return settings;
}

}  // namespace fencepost::config
