// Confluent's wire format: a zero byte, the id of the schema (4 bytes, the highest first), and the
// payload. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace fencepost::consumer {

struct WireMessage {
  std::uint32_t schema_id = 0;
  std::string_view payload;  // of Protobuf with the indexes of its message
};

// Error: one line without anything of the bytes; a predicate ("is cut off …").
tl::expected<WireMessage, std::string> ParseWireFormat(std::string_view bytes);

// What stands before the payload.
void AppendWireHeader(std::uint32_t schema_id, std::string& out);

// A number within a payload: of Avro, and of a Protobuf message's indexes.
void AppendZigzag(std::int64_t number, std::string& out);

}  // namespace fencepost::consumer
