// Protobuf by libprotobuf, from the proto3 JSON mapping.
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include "consumer/decode/protobuf_schema.h"
#include "consumer/decode/protobuf_size.h"
#include "consumer/decode/wire_format.h"
#include "consumer/encode/encoder.h"
#include "consumer/json/json_text.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

namespace pb = google::protobuf;

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
    // libprotobuf takes more than JSON.
    if (const std::string_view why = JsonProblem(json); !why.empty()) {
      return Problem(fmt::format("is not valid JSON: {}", why), "");
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
