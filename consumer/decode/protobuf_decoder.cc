// Protobuf by libprotobuf: the schema's text is parsed, a message of it is made at run time, and
// written by the proto3 JSON mapping.
#include <array>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>
#include <simdjson.h>

#include "consumer/decode/byte_reader.h"
#include "consumer/decode/decoder.h"
#include "consumer/decode/protobuf_size.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

namespace pb = google::protobuf;

constexpr const char* kMainFile = "fencepost-record-schema.proto";  // no import has this name
constexpr const char* kTypeUrl = "type.googleapis.com";

// What a registry lets every schema import without a reference, beside google/protobuf/*.
constexpr std::array<std::pair<const char*, const char*>, 2> kBuiltIn{{
    {"confluent/meta.proto",
     R"(syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; })"},
    {"confluent/type/decimal.proto",
     R"(syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; int32 precision = 2; int32 scale = 3; })"},
}};

// The first thing that is wrong with a schema.
class FirstError : public pb::io::ErrorCollector, public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(int line, int /*column*/, const std::string& what) override {
    Keep(fmt::format("line {}: {}", line + 1, what));
  }
  void AddError(const std::string& /*file*/, const std::string& element,
                const pb::Message* /*descriptor*/, ErrorLocation /*where*/,
                const std::string& what) override {
    Keep(element.empty() ? what : fmt::format("{}: {}", element, what));
  }
  std::string text;

 private:
  void Keep(const std::string& what) {
    if (text.empty()) text = OneLine(what, 300);
  }
};

// The text of a .proto file, or a serialized FileDescriptorProto as base64: registries give both.
bool ParseFile(const std::string& text, pb::FileDescriptorProto& file, FirstError& error) {
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  pb::io::Tokenizer tokens(&stream, &error);
  pb::compiler::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.Parse(&tokens, &file) && error.text.empty()) return true;
  const auto bytes = FromBase64(text);
  file.Clear();
  return bytes && file.ParseFromString(*bytes);
}

class ProtobufDecoder : public Decoder {
 public:
  // Empty, or what is wrong.
  std::string Load(const SchemaText& schema) {
    FirstError error;
    for (const auto& [name, text] : kBuiltIn) {
      if (!Add(name, text, error)) return error.text;
    }
    for (const SchemaReference& reference : schema.references) {
      if (!Add(reference.name, reference.text, error)) return error.text;
    }
    if (!Add(kMainFile, schema.text, error)) return error.text;
    databases_ =
        std::make_unique<pb::MergedDescriptorDatabase>(&files_, &known_);  // the first one wins
    pool_ = std::make_unique<pb::DescriptorPool>(databases_.get(), &error);
    file_ = pool_->FindFileByName(kMainFile);
    if (file_ == nullptr) return error.text.empty() ? "it cannot be resolved" : error.text;
    resolver_.reset(pb::util::NewTypeResolverForDescriptorPool(kTypeUrl, pool_.get()));
    factory_ = std::make_unique<pb::DynamicMessageFactory>(pool_.get());
    return file_->message_type_count() == 0 ? "it has no message" : "";
  }

  tl::expected<void, std::string> Decode(std::string_view payload, std::string& json) override {
    ByteReader in(payload);
    const pb::Descriptor* type = Message(in);
    if (type == nullptr) {
      return tl::unexpected<std::string>(
          "names no message of this schema (the indexes behind the schema id)");
    }
    const std::string_view bytes = in.rest();
    const std::size_t most = MaxJsonOf(payload.size());
    if (sizes_.Estimate(*type, bytes, most) > most) {
      return tl::unexpected<std::string>("becomes too much JSON");
    }
    const std::unique_ptr<pb::Message> message(factory_->GetPrototype(type)->New());
    if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return tl::unexpected<std::string>(fmt::format("is no message {}", type->full_name()));
    }
    const std::size_t before = json.size();
    if (!Write(*message, json)) {
      return tl::unexpected<std::string>(fmt::format(
          "is a message {} that has no JSON form (a Timestamp or Duration out of range, "
          "an Any of another schema, nested too deeply)",
          type->full_name()));
    }
    if (json.size() - before > most) return tl::unexpected<std::string>("becomes too much JSON");
    if (!simdjson::validate_utf8(json.data() + before, json.size() - before)) {
      return tl::unexpected<std::string>("has a string that is not UTF-8");
    }
    return {};
  }

 private:
  bool Add(const std::string& name, const std::string& text, FirstError& error) {
    pb::FileDescriptorProto file;
    if (!ParseFile(text, file, error)) return false;
    error.text.clear();
    file.set_name(name);
    // Of one name the first stands: a reference that is met twice is the same.
    pb::FileDescriptorProto there;
    return files_.FindFileByName(name, &there) || files_.Add(file) || Refuse(name, error);
  }
  static bool Refuse(const std::string& name, FirstError& error) {
    error.text = OneLine(name + " defines what another file does", 300);
    return false;
  }

  // The path to the message: how many indexes, then each, the outermost first. One zero is [0].
  const pb::Descriptor* Message(ByteReader& in) const {
    const auto count = in.Long();
    if (!count || *count < 0 || *count > kMaxDepth) return nullptr;
    if (*count == 0) return file_->message_type(0);
    const pb::Descriptor* at = nullptr;
    for (std::int64_t i = 0; i < *count; ++i) {
      const auto index = in.Long();
      const int most = at == nullptr ? file_->message_type_count() : at->nested_type_count();
      if (!index || *index < 0 || *index >= most) return nullptr;
      const int place = static_cast<int>(*index);
      at = at == nullptr ? file_->message_type(place) : at->nested_type(place);
    }
    return at;
  }

  // Maps in one order, so that equal messages are equal texts.
  bool Write(const pb::Message& message, std::string& json) {
    wire_.clear();
    {
      pb::io::StringOutputStream stream(&wire_);
      pb::io::CodedOutputStream out(&stream);
      out.SetSerializationDeterministic(true);
      if (!message.SerializeToCodedStream(&out)) return false;
    }
    pb::util::JsonPrintOptions options;
    options.always_print_primitive_fields = true;
    options.preserve_proto_field_names = true;
    const std::string url = fmt::format("{}/{}", kTypeUrl, message.GetDescriptor()->full_name());
    return pb::util::BinaryToJsonString(resolver_.get(), url, wire_, &json, options).ok();
  }

  // In the order that they lean on each other.
  pb::SimpleDescriptorDatabase files_;
  pb::DescriptorPoolDatabase known_{*pb::DescriptorPool::generated_pool()};
  std::unique_ptr<pb::MergedDescriptorDatabase> databases_;
  std::unique_ptr<pb::DescriptorPool> pool_;
  const pb::FileDescriptor* file_ = nullptr;
  std::unique_ptr<pb::util::TypeResolver> resolver_;
  std::unique_ptr<pb::DynamicMessageFactory> factory_;
  ProtobufSizes sizes_;
  std::string wire_;
};

}  // namespace

MadeDecoder MakeProtobufDecoder(const SchemaText& schema) {
  // It would write what it finds wrong with a record to stderr, beside the log.
  static pb::LogHandler* const kSilenced = pb::SetLogHandler(nullptr);
  (void)kSilenced;
  auto decoder = std::make_unique<ProtobufDecoder>();
  if (const std::string why = decoder->Load(schema); !why.empty()) {
    return tl::unexpected<std::string>("it is no Protobuf schema: " + why);
  }
  return decoder;
}

}  // namespace fencepost::consumer
