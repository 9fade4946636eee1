// Cells of arrays, whose elements are cells, and of maps.
#include <simdjson.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_types.h"
#include "consumer/outputs/rows/cell_values.h"

namespace fencepost::consumer {
namespace {

using simdjson::ondemand::json_type;
using Appended = tl::expected<void, std::string>;

tl::unexpected<std::string> Wrong(std::string what) { return tl::unexpected(std::move(what)); }
constexpr const char* kNotText = "has a string that stands for no text";

// As array literals and hstore read it.
void AppendEscaped(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
}

// The element's text, as a selector finds it.
tl::expected<JsonType, std::string> TextOf(simdjson::ondemand::value value, std::string& text) {
  json_type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return Wrong(kNotText);
  std::string_view found;
  const auto read = type == json_type::string   ? value.get_string().get(found)
                    : type == json_type::object ? simdjson::to_json_string(value).get(found)
                                                : simdjson::SUCCESS;
  if (read != simdjson::SUCCESS) return Wrong(kNotText);
  if (type != json_type::string && type != json_type::object) {
    found = Trimmed(value.raw_json_token());
  }
  text = found;
  if (type == json_type::string) return JsonType::kString;
  if (type == json_type::object) return JsonType::kObject;
  return type == json_type::number ? JsonType::kNumber : JsonType::kBoolean;
}

class ArrayCell {
 public:
  ArrayCell(const CellType& element, const Column& from, ArrayForm form)
      : element_(element), from_(from), postgres_(form == ArrayForm::kPostgres) {}

  Appended Append(simdjson::ondemand::value value) {
    simdjson::ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return Wrong(kNotText);
    const std::size_t begin = out_.size();
    out_.push_back(postgres_ ? '{' : '[');
    for (auto each : array) {
      simdjson::ondemand::value inner;
      if (each.get(inner) != simdjson::SUCCESS) return Wrong(kNotText);
      if (out_.size() > begin + 1) out_.push_back(',');
      if (auto done = AppendElement(inner); !done) return done;
    }
    if (postgres_ && begin > 0 && out_.size() == begin + 1) {
      return Wrong("has an empty array in an array, which PostgreSQL does not keep");
    }
    out_.push_back(postgres_ ? '}' : ']');
    return {};
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  Appended AppendElement(simdjson::ondemand::value value) {
    if (value.type() == json_type::array) return Append(value);
    if (value.is_null()) {
      out_ += postgres_ ? "NULL" : "null";
      return {};
    }
    std::string text;
    const auto type = TextOf(value, text);
    if (!type) return Wrong(type.error());
    if (auto made = MakeCell(element_, from_, *type, text, 0); !made) {
      return Wrong("has an element that " + made.error());
    }
    if (element_.kind == CellKind::kBytes) text = "\\x" + ToHex(text);
    const bool bare = *type == JsonType::kNumber || *type == JsonType::kBoolean;
    const bool written = IsJsonNumber(text) || text == "true" || text == "false";
    if (bare && written && element_.kind != CellKind::kJson) {
      out_ += text;
    } else if (postgres_) {
      AppendEscaped(text, out_);
    } else {
      AppendJsonString(text, out_);
    }
    return {};
  }

  const CellType& element_;
  const Column& from_;
  const bool postgres_;
  std::string out_;
};

}  // namespace

Appended MakeCellArray(const CellType& element, const Column& from, ArrayForm form,
                       std::string& text, std::size_t at) {
  thread_local simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(std::string_view(text).substr(at));
  simdjson::ondemand::document document;
  simdjson::ondemand::value value;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document.get_value().get(value) != simdjson::SUCCESS) {
    return Wrong(kNotText);
  }
  ArrayCell cell(element, from, form);
  if (auto done = cell.Append(value); !done) return done;
  text.replace(at, std::string::npos, cell.text());
  return {};
}

Appended MakeCellMap(std::string& text, std::size_t at) {
  thread_local simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(std::string_view(text).substr(at));
  simdjson::ondemand::document document;
  simdjson::ondemand::object members;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document.get_object().get(members) != simdjson::SUCCESS) {
    return Wrong("is no JSON object");
  }
  std::string map;
  for (auto member : members) {
    std::string_view name;
    simdjson::ondemand::value value;
    if (member.unescaped_key().get(name) != simdjson::SUCCESS ||
        member.value().get(value) != simdjson::SUCCESS) {
      return Wrong(kNotText);
    }
    if (!map.empty()) map += ", ";
    AppendEscaped(name, map);
    map += "=>";
    if (value.is_null()) {
      map += "NULL";
      continue;
    }
    if (value.type() == json_type::array) return Wrong("has an array, and the map has texts alone");
    std::string each;
    const auto type = TextOf(value, each);
    if (!type) return Wrong(type.error());
    if (*type == JsonType::kObject) return Wrong("has an object, and the map has texts alone");
    AppendEscaped(each, map);
  }
  text.replace(at, std::string::npos, map);
  return {};
}

}  // namespace fencepost::consumer
