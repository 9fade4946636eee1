#include "consumer/encode/encoder.h"

namespace fencepost::consumer {
namespace {

class JsonEncoder : public Encoder {
 public:
  tl::expected<void, EncodeProblem> Encode(std::string_view json, std::string& payload) override {
    payload.append(json);
    return {};
  }
};

}  // namespace

MadeEncoder MakeEncoder(const SchemaText& schema, const std::string& message) {
  switch (schema.kind) {
    case SchemaKind::kAvro:
      return MakeAvroEncoder(schema);
    case SchemaKind::kProtobuf:
      return MakeProtobufEncoder(schema, message);
    case SchemaKind::kJson:
      break;
  }
  return std::make_unique<JsonEncoder>();
}

}  // namespace fencepost::consumer
