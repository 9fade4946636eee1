#include "config/read/node_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "consumer/json/json_text.h"
#include "locking/base/check.h"

namespace fencepost::config {
namespace {

using Text = tl::expected<std::string, TextProblem>;

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
    const bool literal =
        node.plain && (text == "true" || text == "false" || consumer::IsJsonNumber(text));
    return literal ? text : Quoted(text);
  });
}

}  // namespace

Text NodeText(const Node& node, const Environment& environment) {
  FENCEPOST_CHECK(node.kind != Node::Kind::kNull, "null has no text");
  return node.kind == Node::Kind::kScalar ? ScalarText(node, environment) : Json(node, environment);
}

}  // namespace fencepost::config
