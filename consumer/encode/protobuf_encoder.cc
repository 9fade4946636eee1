// Protobuf by libprotobuf, from the proto3 JSON mapping.
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include "consumer/decode/protobuf_schema.h"
#include "consumer/decode/protobuf_size.h"
#include "consumer/decode/wire_format.h"
#include "consumer/encode/encoder.h"
#include "consumer/encode/json_tree.h"
#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_values.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

namespace pb = google::protobuf;

// What libprotobuf would leave out or round, and say nothing of. Empty: nothing.
class Losses {
 public:
  std::string Of(const pb::Descriptor& type, const JsonValue& value) {
    // Google's own types have JSON of their own form.
    if (value.kind != Json::kObject || type.full_name().starts_with("google.protobuf.")) return "";
    const Fields& fields = FieldsOf(type);
    std::set<const void*> seen;  // fields, and oneofs
    for (std::size_t i = 0; i < value.names.size(); ++i) {
      const auto found = fields.find(value.names[i]);
      if (found == fields.end()) continue;  // libprotobuf refuses it
      const pb::FieldDescriptor& field = *found->second;
      const JsonValue& member = value.members[i];
      if (!seen.insert(&field).second) return "has a field under both of its names";
      const auto* const oneof = field.real_containing_oneof();
      if (oneof != nullptr && member.kind != Json::kNull && !seen.insert(oneof).second) {
        return "has two fields of a oneof";
      }
      if (std::string why = OfField(field, member); !why.empty()) return why;
    }
    return "";
  }

 private:
  using Json = JsonValue::Kind;
  using Fields = std::unordered_map<std::string, const pb::FieldDescriptor*>;

  const Fields& FieldsOf(const pb::Descriptor& type) {
    const auto [found, is_new] = fields_.try_emplace(&type);
    for (int i = 0; is_new && i < type.field_count(); ++i) {
      const pb::FieldDescriptor& field = *type.field(i);
      found->second.emplace(field.name(), &field);
      found->second.emplace(field.json_name(), &field);
    }
    return found->second;
  }

  std::string OfField(const pb::FieldDescriptor& field, const JsonValue& value) {
    if (!field.is_repeated() || value.kind == Json::kNull) return OfOne(field, value);
    const pb::FieldDescriptor& of =
        field.is_map() ? *field.message_type()->FindFieldByNumber(2) : field;
    for (const JsonValue& member : value.members) {
      if (member.kind == Json::kNull && !TakesNull(of)) return "has null in a list";
      if (std::string why = OfOne(of, member); !why.empty()) return why;
    }
    return "";
  }
  std::string OfOne(const pb::FieldDescriptor& field, const JsonValue& value) {
    if (field.message_type() != nullptr) return Of(*field.message_type(), value);
    const bool number =
        value.kind == Json::kNumber || (value.kind == Json::kString && IsJsonNumber(value.text));
    if (!number) return "";
    const auto problem = [](const auto& read) { return read ? std::string() : read.error(); };
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_FLOAT) {
      return problem(FloatOf<float>(value.text));
    }
    return field.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE
               ? problem(FloatOf<double>(value.text))
               : "";
  }
  static bool TakesNull(const pb::FieldDescriptor& field) {
    if (field.enum_type() != nullptr) {
      return field.enum_type()->full_name() == "google.protobuf.NullValue";
    }
    return field.message_type() != nullptr &&
           field.message_type()->full_name() == "google.protobuf.Value";
  }

  std::map<const pb::Descriptor*, Fields> fields_;
};

class ProtobufEncoder : public Encoder {
 public:
  // Empty, or what is wrong.
  std::string Load(const SchemaText& schema, const std::string& message) {
    if (std::string why = schema_.Load(schema); !why.empty()) {
      return "it is no Protobuf schema: " + why;
    }
    type_ = message.empty() ? schema_.file().message_type(0)
                            : schema_.file().pool()->FindMessageTypeByName(message);
    if (type_ == nullptr || type_->file() != &schema_.file()) {
      return fmt::format("the schema has no message {}", OneLine(message));
    }
    // The path to the message: how many indexes, then each. [0] is one zero.
    const std::vector<int> path = ProtobufSchema::PathOf(*type_);
    if (path == std::vector<int>{0}) {
      indexes_.assign(1, '\0');
    } else {
      AppendZigzag(static_cast<std::int64_t>(path.size()), indexes_);
      for (const int index : path) AppendZigzag(index, indexes_);
    }
    return "";
  }

  tl::expected<void, EncodeProblem> Encode(std::string_view json, std::string& payload) override {
    // libprotobuf takes more than JSON, and less of it than there is.
    if (const std::string_view why = JsonProblem(json); !why.empty()) {
      return Problem(fmt::format("is not valid JSON: {}", why), "");
    }
    const auto tree = ParseJsonTree(json);
    if (!tree) return Problem(tree.error(), "");
    if (const std::string why = losses_.Of(*type_, tree->top); !why.empty()) {
      return Problem(why, "");
    }
    wire_.clear();
    const auto status = pb::util::JsonToBinaryString(
        schema_.resolver(), ProtobufSchema::UrlOf(*type_), {json.data(), json.size()}, &wire_,
        pb::util::JsonParseOptions());
    if (!status.ok()) return Misfit(status.ToString());
    if (sizes_.Measure(*type_, wire_).message > MaxMemoryOf(json.size())) {
      return Problem("takes too much memory (all fields of all its messages count)", "");
    }
    if (!schema_.New(*type_)->ParseFromString(wire_)) {
      return Misfit("readers would refuse it (nested too deeply)");
    }
    payload.append(indexes_).append(wire_);
    return {};
  }

 private:
  static tl::unexpected<EncodeProblem> Problem(const std::string& shown, const std::string& more) {
    return tl::unexpected(EncodeProblem{.detail = shown + more, .shown = shown});
  }
  // libprotobuf's own words quote the record.
  [[nodiscard]] tl::unexpected<EncodeProblem> Misfit(const std::string& words) const {
    return Problem(fmt::format("is no message {} by the proto3 JSON mapping", type_->full_name()),
                   ": " + OneLine(words, 500));
  }

  ProtobufSchema schema_;
  ProtobufSizes sizes_;
  Losses losses_;
  const pb::Descriptor* type_ = nullptr;
  std::string indexes_, wire_;
};

}  // namespace

MadeEncoder MakeProtobufEncoder(const SchemaText& schema, const std::string& message) {
  auto encoder = std::make_unique<ProtobufEncoder>();
  if (const std::string why = encoder->Load(schema, message); !why.empty()) {
    return tl::unexpected<std::string>(why);
  }
  return encoder;
}

}  // namespace fencepost::consumer
