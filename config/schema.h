// What a pipeline file may say: one row a key, from which the checks, REFERENCE.md and (later) the
// JSON Schema are made. A key is added here first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost::config {

enum class Type : std::uint8_t {
  kSection,  // a map of further keys
  kText,
  kInteger,
  kBoolean,
  kDuration,
  kSize,
  kChoice,  // one of `choices`
  kSelector,
  kTexts,        // a list, not empty
  kTextMap,      // names of the user's own → texts
  kSelectorMap,  // names of the user's own → selectors, not empty
};

struct Key {
  std::string_view path;  // dotted, as in lock.redis.nodes
  Type type = Type::kText;
  std::string_view help = "";           // for people; one line of Markdown
  std::string_view default_value = "";  // as it would be written; empty: none
  std::string_view default_words = "";  // where the default is not a value
  std::vector<std::string_view> choices = {};
  std::vector<std::string_view> unsupported_choices = {};  // of `choices`
  std::string_view min = "";  // as it would be written; integers, durations, sizes
  std::string_view max = "";
  // Of a text, or each text of a list, or each name of a map: empty, or a predicate ("is not …").
  std::string (*check)(std::string_view text) = nullptr;
  bool required = false;  // where its section stands
  bool secret = false;    // its value is never printed
  bool supported = true;  // false: known, but not in this build
};

std::span<const Key> Schema();
const Key* FindKey(std::string_view path);
// The last names of the keys right under a section ("" is the file).
std::vector<std::string_view> ChildrenOf(std::string_view section);
std::string_view ParentOf(std::string_view path);
std::string_view NameOf(std::string_view path);

}  // namespace fencepost::config
