// Protobuf by libprotobuf: a message of the schema is made at run time, and written by the proto3
// JSON mapping.
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <simdjson.h>

#include "consumer/decode/byte_reader.h"
#include "consumer/decode/decoder.h"
#include "consumer/decode/protobuf_schema.h"
#include "consumer/decode/protobuf_size.h"

namespace fencepost::consumer {
namespace {

namespace pb = google::protobuf;

class ProtobufDecoder : public Decoder {
 public:
  // Empty, or what is wrong.
  std::string Load(const SchemaText& schema) { return schema_.Load(schema); }

  tl::expected<void, std::string> Decode(std::string_view payload, std::string& json) override {
    ByteReader in(payload);
    const pb::Descriptor* type = Message(in);
    if (type == nullptr) {
      return tl::unexpected<std::string>(
          "names no message of this schema (the indexes behind the schema id)");
    }
    const std::string_view bytes = in.rest();
    const std::size_t most = MaxMemoryOf(payload.size());
    if (sizes_.Measure(*type, bytes).message > most) return TooMuch();
    {
      const auto message = schema_.New(*type);
      if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
          !Serialize(*message)) {
        return tl::unexpected<std::string>(fmt::format("is no message {}", type->full_name()));
      }
    }
    const ProtobufSize size = sizes_.Measure(*type, wire_);
    if (size.tree + 2 * size.json > most) return TooMuch();
    const std::size_t before = json.size();
    if (!Write(*type, json)) {
      return tl::unexpected<std::string>(fmt::format(
          "is a message {} that has no JSON form (a Timestamp or Duration out of range, "
          "an Any of another schema, nested too deeply)",
          type->full_name()));
    }
    if (json.size() - before > MaxJsonOf(payload.size())) {
      return tl::unexpected<std::string>("becomes too much JSON");
    }
    if (!simdjson::validate_utf8(json.data() + before, json.size() - before)) {
      return tl::unexpected<std::string>("has a string that is not UTF-8");
    }
    return {};
  }

 private:
  // The path to the message: how many indexes, then each, the outermost first. One zero is [0].
  const pb::Descriptor* Message(ByteReader& in) const {
    const auto count = in.Long();
    if (!count || *count < 0 || *count > kMaxDepth) return nullptr;
    if (*count == 0) return schema_.At({0});
    std::vector<int> path;
    for (std::int64_t i = 0; i < *count; ++i) {
      const auto index = in.Long();
      if (!index || *index < 0 || *index > std::numeric_limits<int>::max()) return nullptr;
      path.push_back(static_cast<int>(*index));
    }
    return schema_.At(path);
  }

  static tl::unexpected<std::string> TooMuch() {
    return tl::unexpected<std::string>(
        "takes too much memory to become JSON (all fields of all its messages count, with their "
        "default values)");
  }

  // Maps in one order, so that equal messages are equal texts.
  bool Serialize(const pb::Message& message) {
    wire_.clear();
    pb::io::StringOutputStream stream(&wire_);
    pb::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    return message.SerializeToCodedStream(&out);
  }

  bool Write(const pb::Descriptor& type, std::string& json) {
    pb::util::JsonPrintOptions options;
    options.always_print_primitive_fields = true;
    options.preserve_proto_field_names = true;
    return pb::util::BinaryToJsonString(schema_.resolver(), ProtobufSchema::UrlOf(type), wire_,
                                        &json, options)
        .ok();
  }

  ProtobufSchema schema_;
  ProtobufSizes sizes_;
  std::string wire_;
};

}  // namespace

MadeDecoder MakeProtobufDecoder(const SchemaText& schema) {
  auto decoder = std::make_unique<ProtobufDecoder>();
  if (const std::string why = decoder->Load(schema); !why.empty()) {
    return tl::unexpected<std::string>("it is no Protobuf schema: " + why);
  }
  return decoder;
}

}  // namespace fencepost::consumer
