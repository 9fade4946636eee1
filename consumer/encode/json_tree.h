// A JSON text as values, with numbers as they are written. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace fencepost::consumer {

struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text;                // kNumber: as written; kString: unescaped, UTF-8
  std::vector<JsonValue> members;  // kArray, kObject
  std::vector<std::string> names;  // kObject: of the members
};

struct JsonTree {
  JsonValue top;
  std::size_t values = 0;  // how many there are in it
};

// Error: a predicate of one line that holds nothing of the text ("has too many values").
tl::expected<JsonTree, std::string> ParseJsonTree(std::string_view text);

// For people: "a text", "null".
std::string_view NameOf(JsonValue::Kind kind);

}  // namespace fencepost::consumer
