#include "consumer/decode/decoder.h"

#include <new>

namespace fencepost::consumer {
namespace {

class AsItIs : public Decoder {
 public:
  tl::expected<void, std::string> Decode(std::string_view payload, std::string& json) override {
    json.append(payload);
    return {};
  }
};

}  // namespace

tl::expected<void, std::string> TryDecode(Decoder& decoder, std::string_view payload,
                                          std::string& json) {
  try {
    return decoder.Decode(payload, json);
  } catch (const std::bad_alloc&) {
    json = std::string();
    return tl::unexpected<std::string>("takes more memory than there is");
  }
}

MadeDecoder MakeDecoder(const SchemaText& schema) {
  switch (schema.kind) {
    case SchemaKind::kAvro:
      return MakeAvroDecoder(schema);
    case SchemaKind::kProtobuf:
      return MakeProtobufDecoder(schema);
    case SchemaKind::kJson:
      break;
  }
  return std::make_unique<AsItIs>();
}

}  // namespace fencepost::consumer
