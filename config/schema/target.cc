#include "config/schema/target.h"

#include <fmt/format.h>

#include "config/text/scalar.h"
#include "consumer/pipeline/record_filter.h"

namespace fencepost::config {

using consumer::Column;
using consumer::ContentRule;
using consumer::FilterOptions;
using consumer::HeaderRules;
using consumer::Selector;

void Store(const Given& given, std::string& to) { to = given.texts.front().value; }
void Store(const Given& given, Secret& to) {
  const std::string& text = given.texts.front().value;
  to = given.is_file ? Secret::OfFile(text) : Secret(text);
}
void Store(const Given& given, bool& to) { to = given.number != 0; }
void Store(const Given& given, double& to) { to = static_cast<double>(given.number) / 1000; }
void Store(const Given& given, consumer::Millis& to) { to = consumer::Millis(given.number); }

void Store(const Given& given, std::optional<std::chrono::seconds>& to) {
  to.reset();
  if (Milliseconds(given.number) == kForever) return;
  to = std::chrono::duration_cast<std::chrono::seconds>(Milliseconds(given.number));
}

void Store(const Given& given, std::vector<std::string>& to) {
  to.clear();
  for (const Text& text : given.texts) to.push_back(text.value);
}

void Store(const Given& given, std::vector<std::pair<std::string, std::string>>& to) {
  to.clear();
  for (const Text& text : given.texts) to.emplace_back(text.name, text.value);
}

void Store(const Given& given, std::map<std::string, std::string>& to) {
  to.clear();
  for (const Text& text : given.texts) to[text.name] = text.value;
}

void Store(const Given& given, Selector& to) { to = given.texts.front().selector; }
void Store(const Given& given, std::optional<Selector>& to) { to = given.texts.front().selector; }

void Store(const Given& given, std::vector<Selector>& to) {
  to.clear();
  for (const Text& text : given.texts) to.push_back(text.selector);
}

void Store(const Given& given, std::vector<Column>& to) {
  to.clear();
  for (const Text& text : given.texts) to.push_back({.name = text.name, .selector = text.selector});
}

void Store(const Given& given, HeaderRules& to) {
  to = {};
  for (const Text& text : given.texts) {
    if (text.value == HeaderRules::kDrop) {
      to.dropped.push_back(text.name);
    } else {
      to.set.push_back({.name = text.name, .selector = text.selector});
    }
  }
}

void Store(const Given& given, ContentRule& to) {
  to = {.kind = ContentRule::Kind::kSelectors, .selectors = {}};
  if (given.is_list) return Store(given, to.selectors);
  const bool none = given.texts.front().value == "none";
  to.kind = none ? ContentRule::Kind::kNone : ContentRule::Kind::kValue;
}

void Store(const Given& given, FilterOptions& to) {
  to = {};
  if (!given.is_list) return Store(given, to.program);
  for (const Text& text : given.texts) {
    if (auto condition = consumer::ParseCondition(text.value)) to.all.push_back(*condition);
  }
}

std::string TextOf(const std::string& value) { return value; }
std::string TextOf(bool value) { return value ? "true" : "false"; }
std::string TextOf(double value) { return fmt::format("{}", value); }
std::string TextOf(std::int64_t value) { return std::to_string(value); }
std::string TextOf(consumer::Millis value) { return DurationText(value); }
std::string TextOf(const Selector& value) { return value.Text(); }
std::string TextOf(const std::vector<Selector>& value) {
  return value.empty() ? "" : value.front().Text();
}
std::string TextOf(const ContentRule& value) {
  return value.kind == ContentRule::Kind::kNone ? "none" : "value";
}

bool Same(const std::vector<Column>& a, const std::vector<Column>& b) {
  return std::ranges::equal(a, b, [](const Column& one, const Column& other) {
    return one.name == other.name && one.selector == other.selector;
  });
}

bool Same(const HeaderRules& a, const HeaderRules& b) {
  return Same(a.set, b.set) && a.dropped == b.dropped;
}

bool Same(const ContentRule& a, const ContentRule& b) {
  return a.kind == b.kind && a.selectors == b.selectors;
}

}  // namespace fencepost::config
