// The text of a schema from a registry, and a payload: a schema or one line of error, and what the
// payload becomes by it is within its bound. The first line is the schema (of Avro, where it begins
// as JSON), the rest the payload.
#include "tests/fuzz/decoded.h"

namespace fencepost::fuzz {

using namespace consumer;

void OneInput(std::string_view input) {
  Parts parts(input);
  const std::string text(parts.Line());
  const bool avro = text.find_first_of("{[\"") == 0;
  const SchemaText schema{.kind = avro ? SchemaKind::kAvro : SchemaKind::kProtobuf,
                          .text = text,
                          .references = {{"other.proto", "syntax = \"proto3\"; message O {}"}}};
  const SchemaText alone{.kind = schema.kind, .text = text, .references = {}};
  auto decoder = MakeDecoder(avro ? alone : schema);
  if (!decoder) {
    FENCEPOST_CHECK(!decoder.error().empty() && IsOneLine(decoder.error()), Shown(decoder.error()));
    return;
  }
  auto encoder = avro ? MakeAvroEncoder(alone) : MakeProtobufEncoder(schema, "");
  FENCEPOST_CHECK(encoder || IsOneLine(encoder.error()), Shown(encoder.error()));
  Codec codec{std::move(*decoder), nullptr};
  CheckDecoded(codec, parts.rest());
  if (!encoder) return;
  std::string bytes;
  for (const char* const json : {"null", "{}", "[]", "\"1\"", "{\"a\":1}"}) {
    bytes.clear();
    if (!(*encoder)->Encode(json, bytes)) continue;
    CheckDecoded(codec, avro ? bytes : bytes);
  }
}

}  // namespace fencepost::fuzz
