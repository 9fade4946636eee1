// Bytes as producers write them, and what decoders and encoders make of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "consumer/decode/decoder.h"
#include "consumer/encode/encoder.h"

namespace fencepost::consumer {

// A zigzag varint.
inline std::string Long(std::int64_t number) {
  auto bits = (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
  std::string bytes;
  for (; bits >= 0x80; bits >>= 7) bytes.push_back(static_cast<char>(bits | 0x80));
  bytes.push_back(static_cast<char>(bits));
  return bytes;
}

// Bytes behind their length, as Avro has them.
inline std::string Sized(std::string_view bytes) {
  return Long(static_cast<std::int64_t>(bytes.size())).append(bytes);
}

// The JSON, or the error behind "error: ".
inline std::string Decoded(const SchemaText& schema, std::string_view payload) {
  const auto decoder = MakeDecoder(schema);
  if (!decoder) return "error: " + decoder.error();
  std::string json;
  const auto done = (*decoder)->Decode(payload, json);
  return done ? json : "error: " + done.error();
}

// The bytes, or what is shown of the error behind "error: ".
inline std::string Encoded(const SchemaText& schema, std::string_view json,
                           const std::string& message = "") {
  const auto encoder = MakeEncoder(schema, message);
  if (!encoder) return "error: " + encoder.error();
  std::string payload;
  const auto done = (*encoder)->Encode(json, payload);
  return done ? payload : "error: " + done.error().shown;
}

inline SchemaText Avro(std::string text) {
  return {.kind = SchemaKind::kAvro, .text = std::move(text)};
}
inline SchemaText Protobuf(std::string text) {
  return {.kind = SchemaKind::kProtobuf, .text = std::move(text)};
}
// An Avro type with a logical one.
inline std::string Logical(std::string_view type, std::string_view name,
                           std::string_view more = "") {
  return fmt::format(R"({{"type":"{}","logicalType":"{}"{}}})", type, name, more);
}

}  // namespace fencepost::consumer
