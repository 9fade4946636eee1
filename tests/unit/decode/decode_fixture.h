// Bytes as producers write them, and what a decoder makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "consumer/decode/decoder.h"

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

}  // namespace fencepost::consumer
