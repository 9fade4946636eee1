#include "consumer/decode/protobuf_schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/type_resolver_util.h>

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

// The text of a .proto file, or a serialized FileDescriptorProto as base64: registries give both.
bool ParseFile(const std::string& text, pb::FileDescriptorProto& file,
               pb::io::ErrorCollector& error, const std::string& problem) {
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  pb::io::Tokenizer tokens(&stream, &error);
  pb::compiler::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.Parse(&tokens, &file) && problem.empty()) return true;
  const auto bytes = FromBase64(text);
  file.Clear();
  return bytes && file.ParseFromString(*bytes);
}

}  // namespace

// The first thing that is wrong with a schema.
class ProtobufSchema::FirstError : public pb::io::ErrorCollector,
                                   public pb::DescriptorPool::ErrorCollector {
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

std::string ProtobufSchema::Load(const SchemaText& schema) {
  // It would write what it finds wrong with a record to stderr, beside the log.
  static pb::LogHandler* const kSilenced = pb::SetLogHandler(nullptr);
  (void)kSilenced;
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

bool ProtobufSchema::Add(const std::string& name, const std::string& text, FirstError& error) {
  pb::FileDescriptorProto file;
  if (!ParseFile(text, file, error, error.text)) return false;
  error.text.clear();
  file.set_name(name);
  // Of one name the first stands: a reference that is met twice is the same.
  pb::FileDescriptorProto there;
  if (files_.FindFileByName(name, &there) || files_.Add(file)) return true;
  error.text = OneLine(name + " defines what another file does", 300);
  return false;
}

std::string ProtobufSchema::UrlOf(const pb::Descriptor& type) {
  return fmt::format("{}/{}", kTypeUrl, type.full_name());
}

std::unique_ptr<pb::Message> ProtobufSchema::New(const pb::Descriptor& type) {
  return std::unique_ptr<pb::Message>(factory_->GetPrototype(&type)->New());
}

const pb::Descriptor* ProtobufSchema::At(const std::vector<int>& path) const {
  const pb::Descriptor* at = nullptr;
  for (const int place : path) {
    const int most = at == nullptr ? file_->message_type_count() : at->nested_type_count();
    if (place < 0 || place >= most) return nullptr;
    at = at == nullptr ? file_->message_type(place) : at->nested_type(place);
  }
  return at;
}

std::vector<int> ProtobufSchema::PathOf(const pb::Descriptor& type) {
  std::vector<int> path;
  for (const pb::Descriptor* at = &type; at != nullptr; at = at->containing_type()) {
    path.push_back(at->index());
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace fencepost::consumer
