// What a file says, key by key.
#include <string>
#include <utility>

#include "config/read/reader.h"
#include "locking/base/check.h"

namespace fencepost::config {

Place Values::KeyPlace(std::string_view path) const {
  for (;; path = ParentOf(path)) {
    const auto found = places_.find(path);
    if (found != places_.end()) return found->second;
    FENCEPOST_CHECK(!path.empty(), "the file itself has a place");
  }
}

std::map<std::string, Place, std::less<>> Values::Places() const {
  auto places = places_;
  for (auto& [path, place] : places) place = ValuePlace(path);
  return places;
}

Place Values::ValuePlace(std::string_view path) const {
  const Entry* entry = Find(path);
  return entry != nullptr && !entry->texts.empty() ? entry->texts.front().at : KeyPlace(path);
}

const Entry* Values::Find(std::string_view path) const {
  const Entry* entry = FindPart(path);
  return entry != nullptr && entry->complete ? entry : nullptr;
}

const Entry* Values::FindPart(std::string_view path) const {
  const auto found = entries_.find(path);
  return found == entries_.end() ? nullptr : &found->second;
}

std::span<const Text> Values::Texts(std::string_view path) const {
  const Entry* entry = FindPart(path);
  return entry == nullptr ? std::span<const Text>() : entry->texts;
}

const consumer::Selector* Values::FindSelector(std::string_view path) const {
  const Entry* entry = Find(path);
  return entry == nullptr ? nullptr : &entry->texts.front().selector;
}

std::string Values::String(std::string_view path) const {
  if (const Entry* entry = Find(path)) return entry->texts.front().value;
  const Key* key = FindKey(path);
  FENCEPOST_CHECK(key != nullptr, path);
  return std::string(key->default_value);
}

std::vector<consumer::Selector> Values::Selectors(std::string_view path) const {
  std::vector<consumer::Selector> selectors;
  for (const Text& text : Texts(path)) selectors.push_back(text.selector);
  return selectors;
}

std::vector<std::string> Values::Strings(std::string_view path) const {
  std::vector<std::string> strings;
  for (const Text& text : Texts(path)) strings.push_back(text.value);
  return strings;
}

std::span<const Values> Values::Sections(std::string_view path) const {
  const auto found = sections_.find(path);
  if (found == sections_.end()) return {};
  return found->second;
}

}  // namespace fencepost::config
