#include "consumer/decode/wire_format.h"

#include <fmt/format.h>

namespace fencepost::consumer {

tl::expected<WireMessage, std::string> ParseWireFormat(std::string_view bytes) {
  constexpr std::size_t kHeader = 5;
  if (bytes.empty())
    return tl::unexpected<std::string>("is empty: it is not in a schema registry's format");
  if (bytes[0] == '\x03' || bytes[0] == '\x01') {
    return tl::unexpected(fmt::format(
        "begins with byte {}, as {} does: only the magic byte 0 and an id of 4 bytes are read",
        static_cast<int>(bytes[0]),
        bytes[0] == '\x03' ? "the AWS Glue Schema Registry's format"
                           : "a schema registry's format with a GUID"));
  }
  if (bytes[0] != '\0') {
    return tl::unexpected<std::string>(
        "does not begin with the magic byte of a schema registry (0): it was written without one, "
        "or its schema id is in a header (apicurio.value.globalId, __value_schema_id), which is "
        "not read");
  }
  if (bytes.size() < kHeader) {
    return tl::unexpected<std::string>(
        "ends within the header of a schema registry's format (5 bytes)");
  }
  WireMessage message{.schema_id = 0, .payload = bytes.substr(kHeader)};
  for (const char c : bytes.substr(1, kHeader - 1)) {
    message.schema_id = message.schema_id << 8 | static_cast<unsigned char>(c);
  }
  return message;
}

void AppendWireHeader(std::uint32_t schema_id, std::string& out) {
  out.push_back('\0');
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(schema_id >> shift));
}

void AppendZigzag(std::int64_t number, std::string& out) {
  auto bits = (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
  for (; bits >= 0x80; bits >>= 7) out.push_back(static_cast<char>(bits | 0x80));
  out.push_back(static_cast<char>(bits));
}

}  // namespace fencepost::consumer
