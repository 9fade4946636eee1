// Reads the numbers and pieces of binary formats from bytes that may be anything: nothing is read
// beyond the end, and no length is believed before the bytes are there. Values; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fencepost::consumer {

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes), size_(bytes.size()) {}

  // A zigzag varint (Avro's int and long, Protobuf's sint64): nullopt where it is cut off, or has
  // more than 64 bits.
  std::optional<std::int64_t> Long() {
    std::uint64_t bits = 0;
    for (unsigned shift = 0; shift < 70 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      if (shift == 63 && byte > 1) return std::nullopt;
      rest_.remove_prefix(1);
      bits |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
    }
    return std::nullopt;
  }
  std::optional<std::string_view> Take(std::uint64_t size) {
    if (size > rest_.size()) return std::nullopt;
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  // Behind its length.
  std::optional<std::string_view> Bytes() {
    const auto size = Long();
    if (!size || *size < 0) return std::nullopt;
    return Take(static_cast<std::uint64_t>(*size));
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] std::size_t at() const { return size_ - rest_.size(); }

 private:
  std::string_view rest_;
  std::size_t size_;
};

}  // namespace fencepost::consumer
