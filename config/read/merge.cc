#include "config/read/merge.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "config/read/reader.h"
#include "config/schema/schema.h"

namespace fencepost::config {
namespace {

std::string PathOf(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

void MergeMaps(Node& own, Node shared, const std::string& section, Findings& findings) {
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < own.entries.size(); ++i) known.emplace(own.entries[i].key.text, i);
  for (Member& member : shared.entries) {
    const auto found = known.find(member.key.text);
    if (found == known.end()) {
      own.entries.push_back(std::move(member));
      continue;
    }
    Member& same = own.entries[found->second];
    const std::string path = PathOf(section, member.key.text);
    if (same.value.kind == Node::Kind::kMap && member.value.kind == Node::Kind::kMap) {
      MergeMaps(same.value, std::move(member.value), path, findings);
      continue;
    }
    const Place there = member.key.at;
    findings.Error(same.key.at, "duplicate-key", "{} is given at {} too: leave one of them out",
                   path, PlaceText(findings.SourceOf(there), there.line, there.col));
  }
}

void Move(Node& node, int source) {
  node.at = {0, node.at.col, source};
  for (Node& item : node.items) Move(item, source);
  for (Member& member : node.entries) {
    Move(member.key, source);
    Move(member.value, source);
  }
}

bool WasSet(const Node& node) {
  return node.at.line == 0 || std::ranges::any_of(node.items, WasSet) ||
         std::ranges::any_of(node.entries, [](const Member& m) { return WasSet(m.value); });
}

bool Within(std::string_view text, char begin, char end) {
  const std::size_t last = text.find_last_not_of(' ');
  return text.starts_with(begin) && last != std::string_view::npos && text[last] == end;
}

// Of a key; nullptr: of a name of the user's own. nullopt: it was told what is wrong.
std::optional<Node> ValueOf(const Key* key, std::string_view text, Place at, Findings& findings) {
  const auto needs = [key](Node::Kind kind) { return KindFor(key->type) == kind; };
  // [::1]:9092 is no list.
  const bool list = key != nullptr && Within(text, '[', ']') &&
                    (needs(Node::Kind::kList) || key->or_selectors || key->or_texts);
  const bool file = key != nullptr && key->type == Type::kSecret && text.starts_with("{file:");
  const bool map = key != nullptr && Within(text, '{', '}') &&
                   (needs(Node::Kind::kMap) || key->or_section || file);
  if (list || map) {
    Findings own("");
    std::optional<Node> value = ParseValue(text, 0, own);
    for (const Finding& finding : own.Take()) {
      findings.Error({0, finding.col, at.source}, finding.rule, finding.message);
    }
    if (value) Move(*value, at.source);
    return value;
  }
  Node value;
  value.kind = Node::Kind::kScalar;
  value.at = at;
  value.text = text;
  value.plain = true;
  return value;
}

Member* Find(Node& map, std::string_view name) {
  const auto found =
      std::ranges::find_if(map.entries, [&](const Member& m) { return m.key.text == name; });
  return found == map.entries.end() ? nullptr : &*found;
}

Member& Add(Node& map, std::string_view name, Place at) {
  Member& added = map.entries.emplace_back();
  added.key.kind = Node::Kind::kScalar;
  added.key.at = at;
  added.key.text = name;
  return added;
}

Node EmptyMap(Place at) {
  Node map;
  map.kind = Node::Kind::kMap;
  map.at = at;
  return map;
}

// In the place of what the map has under this name.
void Put(Node& map, std::string_view name, std::optional<Node> value, Findings& findings) {
  if (!value) return;
  Member* member = Find(map, name);
  if (member == nullptr) {
    member = &Add(map, name, value->at);
  } else if (WasSet(member->value)) {
    findings.Error(value->at, "duplicate-key", "the key, or one within it, is set twice");
  }
  member->key.at = value->at;
  member->value = std::move(*value);
}

}  // namespace

void MergeBelow(Node& root, Node shared, Findings& findings) {
  MergeMaps(root, std::move(shared), "", findings);
}

std::string SettingName(std::string_view setting) {
  return fmt::format("--set {}", setting.substr(0, setting.find('=')));
}

void Set(Node& root, std::string_view setting, int source, Findings& findings) {
  const Place at{0, 1, source};
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) {
    return findings.Error(at, "value", "has no value: --set KEY=VALUE, as in --set lock.ttl=5s");
  }
  const std::string_view path = setting.substr(0, equals);
  const std::string_view text = setting.substr(equals + 1);
  for (std::size_t end = path.find('.'); end != path.npos; end = path.find('.', end + 1)) {
    const Key* key = FindKey(path.substr(0, end));
    if (key == nullptr || (key->type != Type::kSections && key->type != Type::kRows)) continue;
    return findings.Error(at, "unknown-key",
                          "{} is a list: what is within it has no path of its own; set all of "
                          "it, as in --set '{}=[{{{}: …}}]'",
                          key->path, key->path, path.substr(end + 1));
  }
  Node* map = &root;
  for (std::size_t begin = 0, end = 0;; begin = end + 1) {
    end = std::min(path.find('.', begin), path.size());
    const Key* key = FindKey(path.substr(0, end));
    if (key == nullptr || end == path.size()) {
      return Put(*map, path.substr(begin, end - begin), ValueOf(key, text, at, findings), findings);
    }
    const bool names = key->type == Type::kTextMap || key->type == Type::kSelectorMap;
    if (KindFor(key->type) != Node::Kind::kMap && !key->or_section) {
      return findings.Error(at, "unknown-key", "there is no key {}: {} has none within it", path,
                            key->path);
    }
    const std::string_view name = path.substr(begin, end - begin);
    Member* member = Find(*map, name);
    if (member == nullptr) {
      member = &Add(*map, name, at);
      member->value = EmptyMap(at);
    }
    if (member->value.kind != Node::Kind::kMap) {
      if (!key->or_section) return;  // who reads it tells that it should be one
      member->value = EmptyMap(at);
    }
    map = &member->value;
    if (!names) continue;
    return Put(*map, path.substr(end + 1), ValueOf(nullptr, text, at, findings), findings);
  }
}

}  // namespace fencepost::config
