// A YAML text as a small tree with places: the only code that includes yaml-cpp. Built from the
// parser's events, because its own nodes lose duplicate keys and follow aliases into themselves.
// Scalars stay text, whatever they look like; whether one was quoted is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/text/finding.h"

namespace fencepost::config {

struct Member;

struct Node {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  Place at;
  std::string text;             // kScalar
  bool plain = false;           // kScalar: neither quoted nor a | or > text
  std::vector<Node> items;      // kList
  std::vector<Member> entries;  // kMap: scalar keys, each once
};

// Not a pair, which must not be named before Node is complete.
struct Member {
  Node key;
  Node value;
};

// Of a map with one text, {WORD: TEXT}, the text WORD:TEXT.
std::optional<Node> PairOf(const Node& map);

// The root of the only document, or nullopt; errors go to `findings`, of whose sources this is one.
// Anchors, aliases, tags and duplicate keys are errors, but leave a tree to go on with.
std::optional<Node> ParseValue(std::string_view text, int source, Findings& findings);
// The same; other than a map is an error.
std::optional<Node> ParseTree(std::string_view text, int source, Findings& findings);

}  // namespace fencepost::config
