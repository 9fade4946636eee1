// Avro behind the header of the wire format, by fixed schemas: the id chooses one.
#include <vector>

#include "tests/fuzz/decoded.h"

namespace fencepost::fuzz {
namespace {

using namespace consumer;

// Every type and logical type; unions whose branches have the same JSON; a type that holds itself;
// and what becomes much JSON of few bytes.
constexpr std::array kSchemas = {
    R"({"type":"record","name":"R","fields":[{"name":"s","type":["null","string"]},)"
    R"({"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},)"
    R"({"name":"m","type":{"type":"map","values":["R","double","long"]}},)"
    R"({"name":"t","type":{"type":"long","logicalType":"timestamp-micros"}},)"
    R"({"name":"a","type":{"type":"array","items":{"type":"fixed","name":"F","size":3}}}]})",
    R"({"type":"record","name":"T","fields":[{"name":"b","type":"boolean"},)"
    R"({"name":"i","type":"int"},{"name":"f","type":"float"},{"name":"g","type":"double"},)"
    R"({"name":"y","type":"bytes"},{"name":"e","type":{"type":"enum","name":"E",)"
    R"("symbols":["A","B"]}},{"name":"da","type":{"type":"int","logicalType":"date"}},)"
    R"({"name":"tm","type":{"type":"int","logicalType":"time-millis"}},)"
    R"({"name":"tu","type":{"type":"long","logicalType":"time-micros"}},)"
    R"({"name":"ts","type":{"type":"long","logicalType":"timestamp-millis"}},)"
    R"({"name":"tn","type":{"type":"long","logicalType":"timestamp-nanos"}},)"
    R"({"name":"lt","type":{"type":"long","logicalType":"local-timestamp-micros"}},)"
    R"({"name":"u","type":{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}}]})",
    R"(["null",{"type":"array","items":["float","double","int","long","bytes","string",)"
    R"({"type":"long","logicalType":"timestamp-millis"},{"type":"int","logicalType":"date"},)"
    R"({"type":"fixed","name":"D","size":4,"logicalType":"decimal","precision":9,"scale":3},)"
    R"({"type":"enum","name":"E","symbols":["A"]},{"type":"map","values":"long"},)"
    R"({"type":"string","logicalType":"uuid"}]}])",
    R"({"type":"array","items":{"type":"record","name":"Z","fields":[)"
    R"({"name":"a_name_that_is_long","type":"null"},{"name":"next","type":["null","Z"]},)"
    R"({"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":4000,)"
    R"("scale":4000}}]}})"};

std::vector<Codec> Codecs() {
  std::vector<Codec> codecs;
  for (const char* const text : kSchemas) {
    const SchemaText schema{.kind = SchemaKind::kAvro, .text = text, .references = {}};
    auto decoder = MakeAvroDecoder(schema);
    auto encoder = MakeAvroEncoder(schema);
    FENCEPOST_CHECK(decoder && encoder, text);
    codecs.push_back({std::move(*decoder), std::move(*encoder)});
  }
  return codecs;
}

}  // namespace

void OneInput(std::string_view input) {
  static std::vector<Codec> codecs = Codecs();
  std::uint32_t id = 0;
  const std::string_view payload = PayloadOf(input, id);
  CheckDecoded(codecs[id % codecs.size()], payload);
}

}  // namespace fencepost::fuzz
