#include "consumer/outputs/rows/cell_values.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_digest.h"
#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/row_rules.h"
#include "consumer/record/text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

__extension__ typedef __int128 Wide;
constexpr std::int64_t kMostDigits = 38;  // that it holds

// Rounded down. nullopt: it does not fit.
std::optional<Wide> Scaled(const Decimal& decimal, int shift) {
  if (decimal.digits.empty()) return 0;
  const std::int64_t exponent = decimal.exponent + shift;
  const auto size = static_cast<std::int64_t>(decimal.digits.size());
  if (size + exponent > kMostDigits) return std::nullopt;
  const std::int64_t whole = std::clamp<std::int64_t>(size + exponent, 0, size);
  Wide value = 0;
  for (std::int64_t i = 0; i < whole; ++i) {
    value = value * 10 + (decimal.digits[static_cast<std::size_t>(i)] - '0');
  }
  for (std::int64_t i = 0; i < exponent; ++i) value *= 10;
  if (!decimal.negative) return value;
  return -value - (whole < size ? 1 : 0);
}

int Shift(Conversion unit) {  // to nanoseconds
  FENCEPOST_CHECK(IsTime(unit), "a number without a unit");
  return 9 - 3 * (static_cast<int>(unit) - static_cast<int>(Conversion::kSeconds));
}

std::optional<std::string> FromAnyBase64(std::string_view text) {
  std::string plain(text);
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  if (plain.find('=') == std::string::npos) plain.append((4 - plain.size() % 4) % 4, '=');
  auto bytes = FromBase64(plain);
  // Bits behind the last byte are zero, or two texts stand for the same bytes.
  if (bytes && ToBase64(*bytes) != plain) return std::nullopt;
  return bytes;
}

std::optional<std::string> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (const char *at = text.data(), *end = at + text.size(); at != end; at += 2) {
    unsigned char byte = 0;
    if (std::from_chars(at, at + 2, byte, 16).ptr != at + 2) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace

std::optional<Decimal> DecimalOf(std::string_view number) {
  std::string canonical;
  AppendCanonicalNumber(number, canonical);
  Decimal decimal;
  std::string_view rest = canonical;
  if (rest == "0") return decimal;
  if (rest.front() == '-') {
    decimal.negative = true;
    rest.remove_prefix(1);
  }
  const std::size_t mark = rest.find('e');
  if (mark == std::string_view::npos || rest.find('.') != std::string_view::npos) {
    return std::nullopt;
  }
  decimal.digits = rest.substr(0, mark);
  const char* end = rest.data() + rest.size();
  const auto [at, error] = std::from_chars(rest.data() + mark + 1, end, decimal.exponent);
  constexpr std::int64_t kLargest = 1'000'000'000'000;  // so that sums hold
  if (error != std::errc() || at != end || std::abs(decimal.exponent) > kLargest) {
    return std::nullopt;
  }
  return decimal;
}

tl::expected<std::int64_t, std::string> WholeNumber(std::string_view number, std::int64_t least,
                                                    std::int64_t most) {
  const auto decimal = DecimalOf(number);
  if (decimal && decimal->exponent < 0) {
    return tl::unexpected<std::string>("is not a whole number");
  }
  const auto value = decimal ? Scaled(*decimal, 0) : std::nullopt;
  if (!value || *value < least || *value > most) {
    return tl::unexpected<std::string>("is a number out of the type's range");
  }
  return static_cast<std::int64_t>(*value);
}

tl::expected<PointInTime, std::string> PointInTimeOf(std::string_view number, Conversion unit) {
  if (!IsJsonNumber(number)) {
    return tl::unexpected(
        fmt::format("is not a number, and `convert: {}` needs one", WordOf(unit)));
  }
  constexpr std::int64_t kNanos = 1'000'000'000;
  const auto decimal = DecimalOf(number);
  const auto nanos = decimal ? Scaled(*decimal, Shift(unit)) : std::nullopt;
  const auto out_of_range = [&] {
    return tl::unexpected(
        fmt::format("is out of the years 1 to 9999 in {}: is that its unit?", WordOf(unit)));
  };
  if (!nanos) return out_of_range();
  Wide seconds = *nanos / kNanos;
  Wide rest = *nanos % kNanos;
  if (rest < 0) {
    rest += kNanos;
    --seconds;
  }
  if (seconds < kYear1 || seconds > kYear9999) return out_of_range();
  return PointInTime{.seconds = static_cast<std::int64_t>(seconds),
                     .nanos = static_cast<std::uint32_t>(rest)};
}

tl::expected<std::string, std::string> Decoded(std::string_view text, Conversion encoding) {
  auto bytes = encoding == Conversion::kBase64 ? FromAnyBase64(text) : FromHex(text);
  if (!bytes) return tl::unexpected(fmt::format("is not {}", WordOf(encoding)));
  return std::move(*bytes);
}

std::string ToHex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

tl::expected<void, std::string> DecodeCell(Conversion encoding, std::string& text, std::size_t at) {
  const auto bytes = Decoded(std::string_view(text).substr(at), encoding);
  if (!bytes) return tl::unexpected(bytes.error());
  text.replace(at, std::string::npos, *bytes);
  return {};
}

tl::expected<void, std::string> MakeCellTime(Conversion unit, const TimeForm& form,
                                             std::string& text, std::size_t at) {
  const auto point = PointInTimeOf(std::string_view(text).substr(at), unit);
  if (!point) return tl::unexpected(point.error());
  text.resize(at);
  if (form.date) {
    AppendDate(*point, text);
    return {};
  }
  AppendDateTime(*point, form.separator, form.digits, text);
  if (form.zone) text += 'Z';
  return {};
}

tl::expected<void, std::string> MakeCellWhole(std::int64_t least, std::int64_t most,
                                              std::string& text, std::size_t at) {
  const auto whole = WholeNumber(std::string_view(text).substr(at), least, most);
  if (!whole) return tl::unexpected(whole.error());
  text.replace(at, std::string::npos, fmt::format_int(*whole).c_str());
  return {};
}

std::string NotText(std::string_view cell, std::string_view bytes) {
  return fmt::format("{}; a {} column takes any bytes",
                     IsUtf8(cell) ? "has a NUL" : "is not UTF-8 text", bytes);
}

tl::expected<void, std::string> MakeCellJson(const Selector& from, std::optional<JsonType> type,
                                             std::string& text, std::size_t at) {
  // The text of `value` is a document of its own, that of the numbers is a number.
  const std::string_view cell = std::string_view(text).substr(at);
  if (from.kind == Selector::Kind::kValue) {
    const std::string_view why = JsonProblem(cell);
    if (why.empty()) return {};
    return tl::unexpected(fmt::format("is not valid JSON: {}", why));
  }
  if (type ? *type != JsonType::kString : IsNumber(from)) return {};
  if (!IsUtf8(cell)) return tl::unexpected<std::string>("is not UTF-8 text");
  std::string quoted;
  AppendJsonString(cell, quoted);
  text.replace(at, std::string::npos, quoted);
  return {};
}

}  // namespace fencepost::consumer
