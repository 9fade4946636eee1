#include "consumer/encode/json_tree.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/decode/decoder.h"
#include "consumer/json/json_text.h"

namespace fencepost::consumer {
namespace {

using Kind = JsonValue::Kind;
namespace ondemand = simdjson::ondemand;

class Builder {
 public:
  // A list that grows is there twice for a moment.
  explicit Builder(std::size_t text) : most_(MaxMemoryOf(text) / (2 * sizeof(JsonValue))) {}

  // Of a text that is one document. false: it has too many values.
  bool Take(ondemand::value from, JsonValue& to) {
    if (++values_ > most_) return false;
    switch (from.type()) {
      case ondemand::json_type::object:
        return Object(from.get_object(), to);
      case ondemand::json_type::array:
        to.kind = Kind::kArray;
        for (ondemand::value item : from.get_array()) {
          if (!Take(item, to.members.emplace_back())) return false;
        }
        return true;
      case ondemand::json_type::string:
        to = {.kind = Kind::kString, .text = std::string(std::string_view(from.get_string()))};
        return true;
      case ondemand::json_type::number:
        to = {.kind = Kind::kNumber, .text = std::string(Trimmed(from.raw_json_token()))};
        return true;
      case ondemand::json_type::boolean:
        to.kind = from.get_bool() ? Kind::kTrue : Kind::kFalse;
        return true;
      case ondemand::json_type::null:
        return true;
    }
    return true;
  }
  [[nodiscard]] std::size_t values() const { return values_; }

 private:
  bool Object(ondemand::object from, JsonValue& to) {
    to.kind = Kind::kObject;
    for (ondemand::field field : from) {
      to.names.emplace_back(std::string_view(field.unescaped_key()));
      if (!Take(field.value(), to.members.emplace_back())) return false;
    }
    return true;
  }

  const std::size_t most_;
  std::size_t values_ = 0;
};

}  // namespace

tl::expected<JsonTree, std::string> ParseJsonTree(std::string_view text) {
  if (const std::string_view why = JsonProblem(text); !why.empty()) {
    return tl::unexpected(fmt::format("is not valid JSON: {}", why));
  }
  thread_local ondemand::parser parser;
  const simdjson::padded_string list(fmt::format("[{}]", text));  // a document may be a scalar
  Builder builder(text.size());
  JsonTree tree;
  ondemand::document document = parser.iterate(list);
  for (ondemand::value value : document.get_array()) {
    if (!builder.Take(value, tree.top)) {
      return tl::unexpected<std::string>("has too many values");
    }
  }
  tree.values = builder.values();
  return tree;
}

std::string_view NameOf(JsonValue::Kind kind) {
  static constexpr std::array<std::string_view, 7> kNames{
      "null", "a boolean", "a boolean", "a number", "a text", "an array", "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace fencepost::consumer
