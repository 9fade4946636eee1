// Protobuf behind the header of the wire format and the indexes of its message, by a fixed schema.
#include "tests/fuzz/decoded.h"

namespace fencepost::fuzz {
namespace {

using namespace consumer;

constexpr const char* kSchema =
    R"(syntax = "proto3"; import "google/protobuf/struct.proto";
import "google/protobuf/any.proto"; import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
message M { string s = 1; M m = 2; map<string, M> by = 3; repeated sint64 n = 4;
  google.protobuf.Struct st = 5; google.protobuf.Any any = 6; double d = 7;
  google.protobuf.Duration du = 8; google.protobuf.Timestamp at = 9; bytes raw = 10;
  enum E { A = 0; B = 5; } E e = 11; optional int32 o = 12;
  oneof which { bool b = 13; float f = 14; }
  google.protobuf.Int64Value w = 15; map<int32, E> es = 16; fixed64 x = 17;
  message Wide { string a_name_that_is_long = 1; int64 b = 2; repeated Wide more = 3; }
  Wide wide = 18; } message Other { M m = 1; })";

Codec MakeCodec(const std::string& message) {
  const SchemaText schema{.kind = SchemaKind::kProtobuf, .text = kSchema, .references = {}};
  auto decoder = MakeProtobufDecoder(schema);
  auto encoder = MakeProtobufEncoder(schema, message);
  FENCEPOST_CHECK(decoder && encoder, decoder ? encoder.error() : decoder.error());
  return {std::move(*decoder), std::move(*encoder)};
}

}  // namespace

void OneInput(std::string_view input) {
  static Codec first = MakeCodec("");
  static Codec other = [] {
    Codec codec = MakeCodec("Other");
    codec.encoder.reset();  // what is decoded may be another message than the encoder's
    return codec;
  }();
  std::uint32_t id = 0;
  const std::string_view payload = PayloadOf(input, id);
  // One zero names the first message, which is the one that is encoded.
  const bool is_first = payload.starts_with('\0');
  CheckDecoded(is_first ? first : other, payload);
}

}  // namespace fencepost::fuzz
