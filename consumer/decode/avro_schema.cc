#include "consumer/decode/avro_schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/json/json_text.h"
#include "consumer/record/text.h"

namespace fencepost::consumer::avro {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxFixed = std::size_t{1} << 30;

constexpr std::array<std::pair<std::string_view, Kind>, 8> kPrimitives{{
    {"null", Kind::kNull},
    {"boolean", Kind::kBoolean},
    {"int", Kind::kInt},
    {"long", Kind::kLong},
    {"float", Kind::kFloat},
    {"double", Kind::kDouble},
    {"bytes", Kind::kBytes},
    {"string", Kind::kString},
}};

struct LogicalRow {
  std::string_view name;
  Kind of;
  Logical logical;
  MomentForm moment;
};
constexpr std::array<LogicalRow, 11> kLogicals{{
    {"date", Kind::kInt, Logical::kMoment, {true, false, false, 0}},
    {"time-millis", Kind::kInt, Logical::kMoment, {false, true, false, 3}},
    {"time-micros", Kind::kLong, Logical::kMoment, {false, true, false, 6}},
    {"timestamp-millis", Kind::kLong, Logical::kMoment, {true, true, true, 3}},
    {"timestamp-micros", Kind::kLong, Logical::kMoment, {true, true, true, 6}},
    {"timestamp-nanos", Kind::kLong, Logical::kMoment, {true, true, true, 9}},
    {"local-timestamp-millis", Kind::kLong, Logical::kMoment, {true, true, false, 3}},
    {"local-timestamp-micros", Kind::kLong, Logical::kMoment, {true, true, false, 6}},
    {"local-timestamp-nanos", Kind::kLong, Logical::kMoment, {true, true, false, 9}},
    {"uuid", Kind::kString, Logical::kUuid, {}},
    {"uuid", Kind::kFixed, Logical::kUuid, {}},
}};

const Kind* Primitive(std::string_view name) {
  const auto* const found = std::find_if(kPrimitives.begin(), kPrimitives.end(),
                                         [&](const auto& row) { return row.first == name; });
  return found == kPrimitives.end() ? nullptr : &found->second;
}

// The text at `name`; empty where there is none.
std::string TextIn(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || !found->is_string() ? "" : found->get<std::string>();
}

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

}  // namespace

// What is wrong is thrown within this file: it ends a recursion.
struct Problem {
  std::string text;
};

class Parser {
 public:
  explicit Parser(Schema* schema) : schema_(schema) {}

  const Type* Text(const std::string& text) {
    // A default is written out by recursion, so not every depth will do.
    const bool shallow = JsonProblem(text, 1024).empty();
    const Json json = shallow ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
    if (json.is_discarded()) throw Problem{"it is not JSON"};
    return Any(json, "", 0);
  }

 private:
  Type* New(Kind kind) {
    schema_->types_.push_back(std::make_unique<Type>());
    schema_->types_.back()->kind = kind;
    return schema_->types_.back().get();
  }

  const Type* Any(const Json& json, const std::string& space, int depth) {
    if (depth > kMaxDepth) throw Problem{"it is nested too deeply"};
    if (json.is_string()) return Named(json.get<std::string>(), space);
    if (json.is_array()) {
      Type* type = New(Kind::kUnion);
      for (const Json& branch : json) type->members.push_back(Any(branch, space, depth + 1));
      if (type->members.empty()) throw Problem{"a union is empty"};
      return type;
    }
    if (!json.is_object() || !json.contains("type")) throw Problem{"a type has no \"type\""};
    const Json& kind = json["type"];
    if (!kind.is_string()) return Any(kind, space, depth + 1);  // {"type": {"type": …}}
    return Object(json, kind.get<std::string>(), space, depth);
  }

  const Type* Named(const std::string& name, const std::string& space) {
    if (const Kind* kind = Primitive(name)) return New(*kind);
    const bool full = space.empty() || name.find('.') != std::string::npos;
    auto found = full ? named_.end() : named_.find(space + "." + name);
    if (found == named_.end()) found = named_.find(name);
    if (found == named_.end()) {
      throw Problem{fmt::format("the type {} is not defined", OneLine(name, 200))};
    }
    return found->second;
  }

  const Type* Object(const Json& json, const std::string& kind, const std::string& space,
                     int depth) {
    if (const Kind* primitive = Primitive(kind)) {
      Type* type = New(*primitive);
      SetLogical(json, *type);
      return type;
    }
    if (kind == "array" || kind == "map") {
      const char* what = kind == "array" ? "items" : "values";
      if (!json.contains(what)) throw Problem{fmt::format("a type {} has no {}", kind, what)};
      Type* type = New(kind == "array" ? Kind::kArray : Kind::kMap);
      type->members.push_back(Any(json[what], space, depth + 1));
      return type;
    }
    if (kind == "record" || kind == "error") return Record(json, space, depth);
    if (kind == "enum") return Enum(json, space);
    if (kind == "fixed") return Fixed(json, space);
    return Named(kind, space);
  }

  // Registers a type under its full name, and says the namespace that it is in.
  std::string Register(const Json& json, const std::string& space, const Type* type) {
    const std::string name = TextIn(json, "name");
    if (name.empty()) throw Problem{"a record, enum or fixed has no name"};
    const std::size_t dot = name.rfind('.');
    std::string own = json.contains("namespace") ? TextIn(json, "namespace") : space;
    if (dot != std::string::npos) own = name.substr(0, dot);
    const std::string local = dot == std::string::npos ? name : name.substr(dot + 1);
    named_[own.empty() ? local : own + "." + local] = type;
    return own;
  }

  const Type* Record(const Json& json, const std::string& space, int depth) {
    Type* type = New(Kind::kRecord);
    const std::string own = Register(json, space, type);
    const auto fields = json.find("fields");
    if (fields == json.end() || !fields->is_array()) throw Problem{"a record has no fields"};
    for (const Json& field : *fields) {
      const std::string name = field.is_object() ? TextIn(field, "name") : "";
      if (name.empty() || !field.contains("type")) throw Problem{"a field has no name, or no type"};
      const Json& of = field["type"];
      type->names.push_back(Quoted(name));
      type->members.push_back(Any(of, own, depth + 1));
      const auto value = field.find("default");
      type->defaults.push_back(value == field.end() ? std::nullopt : std::optional(value->dump()));
    }
    return type;
  }

  const Type* Enum(const Json& json, const std::string& space) {
    Type* type = New(Kind::kEnum);
    Register(json, space, type);
    const auto symbols = json.find("symbols");
    if (symbols == json.end() || !symbols->is_array()) throw Problem{"an enum has no symbols"};
    for (const Json& symbol : *symbols) {
      if (!symbol.is_string()) throw Problem{"a symbol is not a text"};
      type->names.push_back(Quoted(symbol.get<std::string>()));
    }
    return type;
  }

  const Type* Fixed(const Json& json, const std::string& space) {
    Type* type = New(Kind::kFixed);
    Register(json, space, type);
    const auto size = json.find("size");
    if (size == json.end() || !size->is_number_unsigned() || *size > kMaxFixed) {
      throw Problem{"a fixed has no size"};
    }
    type->size = size->get<std::size_t>();
    SetLogical(json, *type);
    return type;
  }

  static void SetLogical(const Json& json, Type& type) {
    const std::string name = TextIn(json, "logicalType");
    if (name == "decimal" && (type.kind == Kind::kBytes || type.kind == Kind::kFixed)) {
      const auto precision = json.find("precision");
      const auto scale = json.find("scale");
      const bool has_scale = scale != json.end();
      if (precision == json.end() || !precision->is_number_unsigned()) return;
      if (has_scale && (!scale->is_number_unsigned() || *scale > *precision)) return;
      type.logical = Logical::kDecimal;
      type.precision = precision->get<std::size_t>();
      type.scale = has_scale ? scale->get<std::size_t>() : 0;
      return;
    }
    for (const LogicalRow& row : kLogicals) {
      if (row.name != name || row.of != type.kind) continue;
      if (type.kind == Kind::kFixed && type.size != 16) continue;
      type.logical = row.logical;
      type.moment = row.moment;
    }
  }

  Schema* schema_;
  std::map<std::string, const Type*> named_;
};

tl::expected<Schema, std::string> Schema::Parse(const SchemaText& text) {
  Schema schema;
  Parser parser(&schema);
  try {
    for (const SchemaReference& reference : text.references) parser.Text(reference.text);
    schema.top_ = parser.Text(text.text);
  } catch (const Problem& problem) {
    return tl::unexpected<std::string>("it is no Avro schema: " + problem.text);
  }
  return schema;
}

}  // namespace fencepost::consumer::avro
