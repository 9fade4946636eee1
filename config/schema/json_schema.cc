#include "config/schema/json_schema.h"

#include <nlohmann/json.hpp>

#include "config/schema/schema.h"
#include "config/text/scalar.h"
#include "locking/base/check.h"

namespace fencepost::config {
namespace {

using Json = nlohmann::ordered_json;

// ${VAR} may be in any value; what comes of it is checked after it was replaced.
constexpr std::string_view kVariable = R"(|\$\{)";

Json Pattern(std::string_view pattern) {
  return {{"type", "string"}, {"pattern", std::string(pattern) + std::string(kVariable)}};
}

Json Reference(std::string_view name) { return {{"$ref", "#/$defs/" + std::string(name)}}; }

Json Definitions() {
  Json defs;
  defs["text"] = {{"type", {"string", "number", "boolean"}}};
  defs["variable"] = Pattern("^$");
  defs["variable"]["pattern"] = R"(\$\{)";
  defs["duration"] = Pattern("^(0|[1-9][0-9]*)(ms|s|m|h|d)$");
  defs["size"] = Pattern("^(0|[1-9][0-9]*)(B|KiB|MiB|GiB)$");
  defs["selector"] = Pattern(
      R"(^(position|(key|value|topic|partition|offset|timestamp|record_id|token|worker|index))"
      R"((\?(default)?)?)$)"
      R"(|^header:.|^(json:|key:|record[:.])(/|(\?(default)?)?$)|^=)");
  defs["any"] = {{"type", {"string", "number", "boolean", "null", "object", "array"}}};
  return defs;
}

Json OrVariable(Json schema) {
  Json either;
  either["anyOf"] = Json::array({std::move(schema), Reference("variable")});
  return either;
}

Json Number(const Key& key) {
  const auto limit = [&](std::string_view text) -> Json {
    const bool decimal = key.type == Type::kDecimal;
    const auto number = decimal ? ParseThousandths(text) : ParseInteger(text);
    FENCEPOST_CHECK(number, key.path);
    if (!decimal) return *number;
    if (*number % 1000 == 0) return *number / 1000;
    return static_cast<double>(*number) / 1000;
  };
  Json schema{{"type", key.type == Type::kInteger ? "integer" : "number"}};
  if (key.limits) {
    schema["minimum"] = limit(key.limits->min);
    schema["maximum"] = limit(key.limits->max);
  }
  return OrVariable(std::move(schema));
}

Json ListOf(const Key& key, Json items) {
  Json schema{{"type", "array"}, {"items", std::move(items)}};
  if (!key.may_be_empty) schema["minItems"] = 1;
  return schema;
}

Json MapOf(Json values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}

Json SectionOf(std::string_view path);

Json OneKeyOf(Json section) {
  section["minProperties"] = section["maxProperties"] = 1;
  return section;
}

Json Section(const Key& key) {
  Json schema = SectionOf(key.path);
  if (key.one_child) schema = OneKeyOf(std::move(schema));
  for (const auto& way : key.ways) {
    Json required = Json::array();
    for (const std::string_view name : way) required.push_back(name);
    schema["oneOf"].push_back({{"required", std::move(required)}});
  }
  return schema;
}

Json Form(const Key& key) {
  switch (key.type) {
    case Type::kSection:
      return Section(key);
    case Type::kText:
      return Reference("text");
    case Type::kSecret:
      return {{"anyOf",
               {Reference("text"),
                {{"type", "object"},
                 {"properties", {{"file", Reference("text")}}},
                 {"required", {"file"}},
                 {"additionalProperties", false}}}}};
    case Type::kInteger:
    case Type::kDecimal:
      return Number(key);
    case Type::kBoolean:
      return OrVariable({{"type", "boolean"}});
    case Type::kDuration:
      if (!key.or_word.empty()) {
        return {{"anyOf", {Reference("duration"), {{"const", key.or_word}}}}};
      }
      return Reference("duration");
    case Type::kSize:
      return Reference("size");
    case Type::kChoice:
      return OrVariable({{"enum", key.choices}});
    case Type::kSelector:
      return Reference("selector");
    case Type::kTexts: {
      Json list = ListOf(key, Reference("text"));
      if (key.by_commas) return {{"anyOf", {std::move(list), Reference("text")}}};
      return list;
    }
    case Type::kSelectors:
      return ListOf(key, Reference("selector"));
    case Type::kTextMap:
      if (key.pairs) {
        Json pair = MapOf(Reference("text"));
        pair["minProperties"] = pair["maxProperties"] = 1;
        return MapOf({{"anyOf", {Reference("text"), std::move(pair)}}});
      }
      return MapOf(Reference("text"));
    case Type::kSelectorMap: {
      Json value = Reference("selector");
      if (!key.or_word.empty()) value = {{"anyOf", {value, {{"const", key.or_word}}}}};
      Json schema = MapOf(std::move(value));
      if (!key.may_be_empty) schema["minProperties"] = 1;
      return schema;
    }
    case Type::kSections:
      return ListOf(key, Section(key));
    case Type::kAny:
      return Reference("any");
    case Type::kRows:
      return ListOf(key, MapOf(Reference("any")));
  }
  FENCEPOST_CHECK(false, key.path);
}

// Numbers and flags as such, the rest as it would be written.
Json Default(const Key& key) {
  const std::string text(key.default_value);
  if (key.type == Type::kInteger || key.type == Type::kDecimal || key.type == Type::kBoolean) {
    return Json::parse(text);
  }
  return text;
}

std::string Description(const Key& key) {
  std::string text(key.help);
  if (!key.default_words.empty()) text += " Default: " + std::string(key.default_words) + ".";
  if (key.type == Type::kDuration || key.type == Type::kSize) {
    text += " From " + std::string(key.limits->min) + " to " + std::string(key.limits->max) + ".";
  }
  return text;
}

Json SectionOf(std::string_view path) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Key& key : Schema()) {
    if (ParentOf(key.path) != path) continue;
    const std::string name(NameOf(key.path));
    Json property{{"description", Description(key)}};
    Json form = Form(key);
    const auto or_also = [&form](Json other) {
      if (!form.contains("anyOf")) form = {{"anyOf", Json::array({std::move(form)})}};
      form["anyOf"].push_back(std::move(other));
    };
    if (key.or_selectors) or_also(ListOf(key, Reference("selector")));
    if (key.or_texts) or_also(ListOf(key, Reference("text")));
    if (key.or_section) {
      Json section = SectionOf(key.path);
      or_also(key.type == Type::kChoice ? OneKeyOf(std::move(section)) : std::move(section));
    }
    if (key.or_by_table) or_also(MapOf(Form(key)));
    property.update(form);
    if (!key.default_value.empty() && key.default_words.empty()) property["default"] = Default(key);
    properties[name] = std::move(property);
    if (key.required) required.push_back(name);
  }
  Json schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace

std::string JsonSchemaText() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "fencepost pipeline file"}};
  schema.update(SectionOf(""));
  schema["$defs"] = Definitions();
  return schema.dump(2) + "\n";
}

}  // namespace fencepost::config
