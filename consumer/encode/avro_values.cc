#include "consumer/encode/avro_values.h"

#include <openssl/bn.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "consumer/decode/avro_text.h"
#include "consumer/outputs/rows/cell_values.h"

namespace fencepost::consumer::avro {
namespace {

using Problem = tl::unexpected<std::string>;

std::string_view WordsOf(const MomentForm& form) {
  if (!form.time) return "is not a date as 2026-11-22";
  if (!form.date) return "is not a time as 13:05:00.250";
  return form.utc ? "is not a time as 2026-11-22T13:05:00.250Z (RFC 3339)"
                  : "is not a time as 2026-11-22T13:05:00.250, without an offset";
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
  BIGNUM* magnitude = nullptr;
  BN_dec2bn(&magnitude,
            (decimal->digits + std::string(static_cast<std::size_t>(zeros), '0')).c_str());
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> owner(magnitude, &BN_free);
  if (decimal->negative) BN_sub_word(magnitude, 1);  // all of its bits are turned below
  std::string bytes(static_cast<std::size_t>(BN_num_bytes(magnitude)), '\0');
  BN_bn2bin(magnitude, reinterpret_cast<unsigned char*>(bytes.data()));
  if (bytes.empty() || TopBit(bytes)) bytes.insert(0, 1, '\0');
  for (char& byte : bytes) byte = static_cast<char>(decimal->negative ? ~byte : byte);
  return bytes;
}

tl::expected<std::int64_t, std::string> UnitsOf(std::string_view text, const MomentForm& form) {
  const auto time = ParseIso(text);
  if (!time || time->has_date != form.date || time->has_time != form.time ||
      time->has_offset != form.utc) {
    return Problem(std::string(WordsOf(form)));
  }
  if (!form.time) return time->point.seconds / 86'400;
  const std::int64_t units = form.UnitsOfSecond();
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
  return std::string(size - bytes.size(), TopBit(bytes) ? '\xff' : '\0') + bytes;
}

std::string_view NameOf(const Type& type) {
  static constexpr std::array<std::string_view, 14> kNames{
      "null",   "a boolean", "an int",  "a long",   "a float", "a double", "bytes",
      "a text", "an object", "an enum", "an array", "a map",   "a union",  "a fixed"};
  if (type.logical == Logical::kDecimal) return "a decimal";
  return kNames[static_cast<std::size_t>(type.kind)];
}

}  // namespace fencepost::consumer::avro
