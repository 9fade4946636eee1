#include "consumer/decode/wire_format.h"

namespace fencepost::consumer {

tl::expected<WireMessage, std::string> ParseWireFormat(std::string_view bytes) {
  constexpr std::size_t kHeader = 5;
  if (bytes.empty())
    return tl::unexpected<std::string>("is empty: it is not in a schema registry's format");
  if (bytes[0] != '\0') {
    return tl::unexpected<std::string>(
        "does not begin with the magic byte of a schema registry (0): it was written without one, "
        "or by other means");
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
