#include "config/read/node_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "locking/base/check.h"

namespace fencepost::config {
namespace {

using Text = tl::expected<std::string, TextProblem>;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::size_t SkipDigits(std::string_view text, std::size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}

// RFC 8259, section 6: no leading zero, no bare point, no +.
bool IsJsonNumber(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  std::size_t end = SkipDigits(text, at);
  if (end == at || (text[at] == '0' && end > at + 1)) return false;
  if (end < text.size() && text[end] == '.') {
    at = end + 1;
    end = SkipDigits(text, at);
    if (end == at) return false;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    at = end + 1;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    end = SkipDigits(text, at);
    if (end == at) return false;
  }
  return end == text.size();
}

std::string Quoted(const std::string& text) { return nlohmann::json(text).dump(); }

Text ScalarText(const Node& node, const Environment& environment) {
  auto text = Expand(node.text, environment);
  if (!text) return tl::unexpected(TextProblem{node.at, "variable", text.error()});
  return *text;
}

Text Json(const Node& node, const Environment& environment);

Text JsonOfMap(const Node& node, const Environment& environment) {
  std::string out = "{";
  for (const auto& [key, value] : node.entries) {
    const Text text = Json(value, environment);
    if (!text) return text;
    if (out.size() > 1) out += ',';
    out += Quoted(key.text) + ':' + *text;
  }
  return out + '}';
}

Text JsonOfList(const Node& node, const Environment& environment) {
  std::string out = "[";
  for (const Node& item : node.items) {
    const Text text = Json(item, environment);
    if (!text) return text;
    if (out.size() > 1) out += ',';
    out += *text;
  }
  return out + ']';
}

Text Json(const Node& node, const Environment& environment) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kMap:
      return JsonOfMap(node, environment);
    case Node::Kind::kList:
      return JsonOfList(node, environment);
    case Node::Kind::kScalar:
      break;
  }
  return ScalarText(node, environment).map([&](const std::string& text) {
    const bool literal = node.plain && (text == "true" || text == "false" || IsJsonNumber(text));
    return literal ? text : Quoted(text);
  });
}

}  // namespace

Text NodeText(const Node& node, const Environment& environment) {
  FENCEPOST_CHECK(node.kind != Node::Kind::kNull, "null has no text");
  return node.kind == Node::Kind::kScalar ? ScalarText(node, environment) : Json(node, environment);
}

}  // namespace fencepost::config
