// Turns what was written under a registered schema into JSON. Pure: a schema's text goes in once,
// then bytes, and nothing is read or asked. A decoder is used by one thread.
//
// Bytes are hostile until proven otherwise: what is cut off, has bytes left over, nests deeper than
// kMaxDepth, would become more than MaxJsonOf its size of JSON or take more than MaxMemoryOf on the
// way is an error, one line that holds nothing of the record. Source: the Avro specification
// (1.12), the proto3 JSON mapping, Confluent's wire format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/json/memory_bound.h"

namespace fencepost::consumer {

inline constexpr int kMaxDepth = 200;
// A text that grows takes twice its size for a moment, and some more.
constexpr std::size_t MaxJsonOf(std::size_t payload) {
  return std::min((std::size_t{8} << 20) + 64 * payload, MaxMemoryOf(payload) * 3 / 8);
}

enum class SchemaKind : std::uint8_t { kAvro, kProtobuf, kJson };
// As schema registries call it.
constexpr std::string_view NameOf(SchemaKind kind) {
  return kind == SchemaKind::kAvro ? "AVRO" : kind == SchemaKind::kProtobuf ? "PROTOBUF" : "JSON";
}

// What another schema refers to: by a type's full name (Avro), or an import's path (Protobuf).
struct SchemaReference {
  std::string name;
  std::string text;
};

struct SchemaText {
  SchemaKind kind = SchemaKind::kAvro;
  std::string text;
  std::vector<SchemaReference> references;  // with theirs, each behind those that it refers to
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // `payload`: what is behind the schema's id. Appends one JSON text; after an error `json` holds
  // anything.
  virtual tl::expected<void, std::string> Decode(std::string_view payload, std::string& json) = 0;
};

// Decode of one record: where there is no memory for it, that is its error.
tl::expected<void, std::string> TryDecode(Decoder& decoder, std::string_view payload,
                                          std::string& json);

using MadeDecoder = tl::expected<std::unique_ptr<Decoder>, std::string>;

// Error: why the schema is none, one line.
MadeDecoder MakeAvroDecoder(const SchemaText& schema);
MadeDecoder MakeProtobufDecoder(const SchemaText& schema);
// Of JSON Schema the value as it is: nothing is checked against the schema.
MadeDecoder MakeDecoder(const SchemaText& schema);

}  // namespace fencepost::consumer
