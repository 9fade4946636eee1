#include "consumer/encode/avro_values.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "consumer/decode/avro_text.h"
#include "consumer/outputs/rows/cell_values.h"

namespace fencepost::consumer::avro {
namespace {

using Problem = tl::unexpected<std::string>;

// How many of the type's units a second has; 0: it counts days.
std::int64_t UnitsOfSecond(Logical logical) {
  switch (logical) {
    case Logical::kTimeMillis:
    case Logical::kTimestampMillis:
    case Logical::kLocalTimestampMillis:
      return 1'000;
    case Logical::kTimeMicros:
    case Logical::kTimestampMicros:
    case Logical::kLocalTimestampMicros:
      return 1'000'000;
    case Logical::kTimestampNanos:
    case Logical::kLocalTimestampNanos:
      return 1'000'000'000;
    default:
      return 0;
  }
}

bool IsTimeOfDay(Logical logical) {
  return logical == Logical::kTimeMillis || logical == Logical::kTimeMicros;
}

bool HasOffset(Logical logical) {
  return logical == Logical::kTimestampMillis || logical == Logical::kTimestampMicros ||
         logical == Logical::kTimestampNanos;
}

std::string_view FormOf(Logical logical) {
  if (logical == Logical::kDate) return "is not a date as 2026-11-22";
  if (IsTimeOfDay(logical)) return "is not a time as 13:05:00.250";
  return HasOffset(logical) ? "is not a time as 2026-11-22T13:05:00.250Z (RFC 3339)"
                            : "is not a time as 2026-11-22T13:05:00.250, without an offset";
}

// Of decimal digits, the highest byte first.
std::string Magnitude(std::string_view digits) {
  std::vector<std::uint32_t> limbs;  // the lowest first
  while (!digits.empty()) {
    const std::size_t count = std::min<std::size_t>(9, digits.size());
    std::uint64_t carry = 0;
    std::uint64_t factor = 1;
    for (const char digit : digits.substr(0, count)) {
      carry = carry * 10 + static_cast<std::uint64_t>(digit - '0');
      factor *= 10;
    }
    for (std::uint32_t& limb : limbs) {
      carry += limb * factor;
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) limbs.push_back(static_cast<std::uint32_t>(carry));
    digits.remove_prefix(count);
  }
  std::string bytes;
  for (std::size_t i = limbs.size() * 4; i-- > 0;) {
    const auto byte = static_cast<char>(limbs[i / 4] >> (i % 4 * 8));
    if (byte != 0 || !bytes.empty()) bytes.push_back(byte);
  }
  return bytes;
}

bool TopBit(std::string_view bytes) { return (static_cast<unsigned char>(bytes.front()) & 0x80); }

}  // namespace

tl::expected<std::string, std::string> DecimalBytes(std::string_view number, std::size_t precision,
                                                    std::size_t scale) {
  const auto decimal = DecimalOf(number);
  if (!decimal) return Problem("is a number out of the type's range");
  if (decimal->digits.empty()) return std::string(1, '\0');
  const std::int64_t zeros = decimal->exponent + static_cast<std::int64_t>(scale);
  if (zeros < 0) return Problem(fmt::format("has more than {} digits behind the point", scale));
  const auto size = static_cast<std::int64_t>(decimal->digits.size()) + zeros;
  const auto most = static_cast<std::int64_t>(std::min(precision, 2 * kMaxDecimalBytes));
  if (size > most) {
    return Problem(fmt::format("has more than the {} digits of the type", precision));
  }
  std::string bytes =
      Magnitude(decimal->digits + std::string(static_cast<std::size_t>(zeros), '0'));
  if (TopBit(bytes)) bytes.insert(0, 1, '\0');
  if (!decimal->negative) return bytes;
  for (char& byte : bytes) byte = static_cast<char>(~byte);
  for (std::size_t i = bytes.size(); i-- > 0;) {
    if (++bytes[i] != 0) break;
  }
  // -128 is 0x80, and not 0xff80.
  if (bytes.size() > 1 && bytes.front() == '\xff' && TopBit(std::string_view(bytes).substr(1))) {
    bytes.erase(0, 1);
  }
  return bytes;
}

tl::expected<std::int64_t, std::string> UnitsOf(std::string_view text, Logical logical) {
  std::string whole(text);
  if (logical == Logical::kDate) whole += "T00:00:00";
  if (IsTimeOfDay(logical)) whole.insert(0, "1970-01-01T");
  const auto time = ParseDateTime(whole);
  if (!time || time->has_offset != HasOffset(logical)) return Problem(std::string(FormOf(logical)));
  if (logical == Logical::kDate) {
    if (text.size() != std::string_view("2026-11-22").size())
      return Problem(std::string(FormOf(logical)));
    return time->point.seconds / 86'400;
  }
  const std::int64_t units = UnitsOfSecond(logical);
  const std::int64_t nanos_of_unit = 1'000'000'000 / units;
  if (time->point.nanos % nanos_of_unit != 0) return Problem("is finer than the type holds");
  std::int64_t count = 0;
  if (__builtin_mul_overflow(time->point.seconds, units, &count) ||
      __builtin_add_overflow(count, time->point.nanos / nanos_of_unit, &count)) {
    return Problem("is a time out of the type's range");
  }
  return count;
}

tl::expected<std::string, std::string> UuidBytes(std::string_view text) {
  std::string hex;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (text[i] == '-')) return Problem("is not a UUID");
    if (!dash) hex.push_back(text[i]);
  }
  auto bytes = Decoded(hex, Conversion::kHex);
  if (!bytes || bytes->size() != 16) return Problem("is not a UUID");
  return std::move(*bytes);
}

tl::expected<std::string, std::string> CodePointBytes(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0xc4) return tl::unexpected<std::string>("is not bytes");
    if (byte < 0x80) bytes.push_back(text[i]);
    if (byte < 0xc2) continue;
    const auto next = static_cast<unsigned char>(text[++i]);  // the parser took UTF-8 only
    bytes.push_back(static_cast<char>((byte & 0x03) << 6 | (next & 0x3f)));
  }
  return bytes;
}

tl::expected<std::string, std::string> Widened(const std::string& bytes, std::size_t size) {
  if (bytes.size() > size)
    return tl::unexpected<std::string>("is a number out of the type's range");
  const bool negative = (static_cast<unsigned char>(bytes.front()) & 0x80) != 0;
  return std::string(size - bytes.size(), negative ? '\xff' : '\0') + bytes;
}

std::string_view NameOf(const Type& type) {
  static constexpr std::array<std::string_view, 14> kNames{
      "null",   "a boolean", "an int",  "a long",   "a float", "a double", "bytes",
      "a text", "an object", "an enum", "an array", "a map",   "a union",  "a fixed"};
  if (type.logical == Logical::kDecimal) return "a decimal";
  return kNames[static_cast<std::size_t>(type.kind)];
}

}  // namespace fencepost::consumer::avro
