// Where the value of a key is in the options that a worker runs by. The row of a key names it once:
// a file's value is stored there, the default is what stands there before, and a reload compares it
// and takes it over. Values, made once; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/text/finding.h"
#include "consumer/pipeline/options.h"

namespace fencepost::config {

using consumer::PipelineOptions;

enum class Type : std::uint8_t {
  kText,
  kSecret,   // a text, or {file: PATH}
  kSection,  // a map of further keys
  kInteger,
  kDecimal,  // 2, 1.5
  kBoolean,
  kDuration,
  kSize,
  kChoice,  // one of `choices`
  kSelector,
  kTexts,        // a list, not empty
  kSelectors,    // a list of selectors
  kTextMap,      // names of the user's own → texts
  kSelectorMap,  // names of the user's own → selectors, not empty
  kSections,     // a list of maps of further keys
  kAny,          // a text, null, or a map or list, taken as its JSON text
  kRows,         // a list of maps: names of the user's own → kAny
};

// One text of the file after ${…} was replaced.
struct Text {
  std::string name;  // in maps of the user's own names
  std::string value;
  std::string shown;    // how messages may print it: as written in the file, or nothing for secrets
  std::string written;  // as in the file, before ${…} was replaced; may hold a secret
  Place at;             // of the value
  Place name_at;
  consumer::Selector selector;  // kSelector, kSelectors, kSelectorMap, or_selectors
};

// What a file gives at a key.
struct Given {
  std::vector<Text> texts;  // one, or several for lists and maps
  // kInteger; kDuration in milliseconds; kSize in bytes; kDecimal in thousandths; kBoolean
  std::int64_t number = 0;
  bool is_list = false;
  bool is_file = false;  // of kSecret: the text is a path
};

struct Target {
  Type type = Type::kText;
  std::vector<std::string_view> choices = {};
  // Where the options hold another output or handler than the key's, these do nothing, and what
  // such options say of the key is the same.
  std::function<void(const Given& given, PipelineOptions& options)> store = {};
  std::function<std::string(const PipelineOptions&)> text = {};  // as a file would say it
  std::function<bool(const PipelineOptions&, const PipelineOptions&)> same = {};
  std::function<void(const PipelineOptions& from, PipelineOptions& to)> take = {};
};

void Store(const Given& given, std::string& to);
void Store(const Given& given, Secret& to);
void Store(const Given& given, bool& to);
void Store(const Given& given, double& to);
void Store(const Given& given, consumer::Millis& to);
void Store(const Given& given, std::optional<std::chrono::seconds>& to);  // kForever: nullopt
void Store(const Given& given, std::vector<std::string>& to);
void Store(const Given& given, std::vector<std::pair<std::string, std::string>>& to);
void Store(const Given& given, std::map<std::string, std::string>& to);
void Store(const Given& given, consumer::Selector& to);
void Store(const Given& given, std::optional<consumer::Selector>& to);
void Store(const Given& given, std::vector<consumer::Selector>& to);
void Store(const Given& given, std::vector<consumer::Column>& to);
void Store(const Given& given, consumer::HeaderRules& to);
void Store(const Given& given, consumer::ContentRule& to);
void Store(const Given& given, consumer::FilterOptions& to);
template <std::integral T>
void Store(const Given& given, T& to) {
  to = static_cast<T>(given.number);
}

// Empty: a file has no text for it, or it is no default.
std::string TextOf(const std::string& value);
std::string TextOf(bool value);
std::string TextOf(double value);
std::string TextOf(std::int64_t value);
std::string TextOf(consumer::Millis value);
std::string TextOf(const consumer::Selector& value);
std::string TextOf(const std::vector<consumer::Selector>& value);
std::string TextOf(const consumer::ContentRule& value);
template <typename T>
std::string TextOf(const T& value) {
  if constexpr (std::is_integral_v<T>) return TextOf(static_cast<std::int64_t>(value));
  return "";
}

bool Same(const std::vector<consumer::Column>& a, const std::vector<consumer::Column>& b);
bool Same(const consumer::HeaderRules& a, const consumer::HeaderRules& b);
bool Same(const consumer::ContentRule& a, const consumer::ContentRule& b);
template <typename T>
bool Same(const T& a, const T& b) {
  return a == b;
}

template <typename T>
constexpr Type TypeOf() {
  using std::is_same_v;
  using Texts = std::vector<std::string>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  using consumer::Selector;
  if constexpr (is_same_v<T, Secret>) return Type::kSecret;
  if constexpr (is_same_v<T, bool>) return Type::kBoolean;
  if constexpr (std::is_integral_v<T>) return Type::kInteger;
  if constexpr (is_same_v<T, double>) return Type::kDecimal;
  if constexpr (is_same_v<T, consumer::Millis>) return Type::kDuration;
  if constexpr (is_same_v<T, std::optional<std::chrono::seconds>>) return Type::kDuration;
  if constexpr (is_same_v<T, Texts>) return Type::kTexts;
  if constexpr (is_same_v<T, Pairs>) return Type::kTextMap;
  if constexpr (is_same_v<T, std::map<std::string, std::string>>) return Type::kTextMap;
  if constexpr (is_same_v<T, Selector>) return Type::kSelector;
  if constexpr (is_same_v<T, std::optional<Selector>>) return Type::kSelector;
  if constexpr (is_same_v<T, std::vector<Selector>>) return Type::kSelectors;
  if constexpr (is_same_v<T, std::vector<consumer::Column>>) return Type::kSelectorMap;
  if constexpr (is_same_v<T, consumer::HeaderRules>) return Type::kSelectorMap;
  if constexpr (is_same_v<T, consumer::ContentRule>) return Type::kChoice;
  return Type::kText;
}

// `section` gives a pointer into the options; nullptr: they hold another output or handler. Then
// the member of a member … of that.
template <typename Section, typename... Members>
auto Reach(Section section, Members... members) {
  return [=](auto& options) {
    auto* const at = section(options);
    return at == nullptr ? nullptr : &(*at.*....*members);
  };
}

// Of what `find` reaches; `put` stores what is given, `say` is its text.
template <typename Find, typename Put, typename Say>
Target Bind(Find find, Put put, Say say) {
  Target target;
  target.store = [=](const Given& given, PipelineOptions& options) {
    if (auto* const to = find(options)) put(given, *to);
  };
  target.text = [=](const PipelineOptions& options) {
    const auto* const value = find(options);
    return value == nullptr ? std::string() : say(*value);
  };
  target.same = [=](const PipelineOptions& a, const PipelineOptions& b) {
    const auto* const one = find(a);
    const auto* const other = find(b);
    return one == nullptr || other == nullptr || Same(*one, *other);
  };
  target.take = [=](const PipelineOptions& from, PipelineOptions& to) {
    const auto* const value = find(from);
    if (auto* const old = find(to); value != nullptr && old != nullptr) *old = *value;
  };
  return target;
}

template <typename... Path>
Target At(Path... path) {
  const auto find = Reach(path...);
  using Value = std::remove_pointer_t<decltype(find(std::declval<PipelineOptions&>()))>;
  Target target = Bind(
      find, [](const Given& given, Value& to) { Store(given, to); },
      [](const Value& value) { return TextOf(value); });
  target.type = TypeOf<Value>();
  return target;
}

// An enum, and the words for its values.
template <typename Enum, typename... Path>
Target OneOf(std::vector<std::pair<std::string_view, Enum>> words, Path... path) {
  const auto put = [=](const Given& given, Enum& to) {
    to = std::ranges::find(words, given.texts.front().value, &decltype(words)::value_type::first)
             ->second;
  };
  const auto say = [=](Enum value) {
    const auto word = std::ranges::find(words, value, &decltype(words)::value_type::second);
    return word == words.end() ? std::string() : std::string(word->first);
  };
  Target target = Bind(Reach(path...), put, say);
  target.type = Type::kChoice;
  for (const auto& [word, value] : words) target.choices.push_back(word);
  return target;
}

// A section that chooses an output or a handler, or that may be left out.
template <typename Section>
Target Chosen(Section section, void (*choose)(PipelineOptions& options)) {
  Target target;
  target.type = Type::kSection;
  target.store = [=](const Given& /*given*/, PipelineOptions& options) { choose(options); };
  target.same = [=](const PipelineOptions& a, const PipelineOptions& b) {
    return (section(a) == nullptr) == (section(b) == nullptr);
  };
  return target;
}

}  // namespace fencepost::config
