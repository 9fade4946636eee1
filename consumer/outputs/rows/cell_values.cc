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
constexpr std::int64_t kDecimalDigits = 38;  // that it holds

enum class Unfit : std::uint8_t { kTooLarge, kFraction };

tl::expected<Wide, Unfit> Scaled(const Decimal& decimal, int shift) {
  if (decimal.digits.empty()) return 0;
  const std::int64_t exponent = decimal.exponent + shift;
  if (exponent < 0) return tl::unexpected(Unfit::kFraction);
  if (static_cast<std::int64_t>(decimal.digits.size()) + exponent > kDecimalDigits) {
    return tl::unexpected(Unfit::kTooLarge);
  }
  Wide value = 0;
  for (const char digit : decimal.digits) value = value * 10 + (digit - '0');
  for (std::int64_t i = 0; i < exponent; ++i) value *= 10;
  return decimal.negative ? -value : value;
}

tl::expected<Wide, std::string> Whole(std::string_view number, Wide least, Wide most) {
  const auto decimal = DecimalOf(number);
  const auto value = decimal ? Scaled(*decimal, 0) : tl::unexpected(Unfit::kTooLarge);
  if (!value && value.error() == Unfit::kFraction) {
    return tl::unexpected<std::string>("is not a whole number");
  }
  if (!value || *value < least || *value > most) {
    return tl::unexpected<std::string>("is a number out of the type's range");
  }
  return *value;
}

// A number in this unit times ten to so many is in nanoseconds.
int Shift(Conversion unit) {
  FENCEPOST_CHECK(IsTime(unit) && unit != Conversion::kDays, "no power of ten");
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

bool AreSameNumber(std::string_view a, std::string_view b) {
  return IsJsonNumber(a) && IsJsonNumber(b) && IsSameNumber(a, b);
}

tl::expected<std::int64_t, std::string> WholeNumber(std::string_view number, std::int64_t least,
                                                    std::int64_t most) {
  return Whole(number, least, most).map([](Wide value) {
    return static_cast<std::int64_t>(value);
  });
}

template <typename Float>
tl::expected<Float, std::string> FloatOf(std::string_view number) {
  constexpr std::size_t kMost = 800;  // digits, of any double
  Float value{};
  const char* end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, value);
  const auto decimal = DecimalOf(number);
  if (error != std::errc() || at != end || !decimal) {
    return tl::unexpected<std::string>("is a number out of the type's range");
  }
  const std::size_t digits = decimal->digits.size();
  if (digits == 0) return value;
  const std::string printed =
      digits > kMost ? "0" : fmt::format("{:.{}e}", static_cast<double>(value), digits - 1);
  if (IsSameNumber(number, printed)) return value;
  return tl::unexpected<std::string>("has digits that the type does not keep");
}
template tl::expected<float, std::string> FloatOf<float>(std::string_view);
template tl::expected<double, std::string> FloatOf<double>(std::string_view);

tl::expected<PointInTime, std::string> PointInTimeOf(std::string_view number, Conversion unit) {
  if (!IsJsonNumber(number)) {
    return tl::unexpected(
        fmt::format("is not a number, and `convert: {}` needs one", WordOf(unit)));
  }
  constexpr std::int64_t kNanos = 1'000'000'000;
  constexpr std::int64_t kDay = 86'400;
  const bool days = unit == Conversion::kDays;
  const auto decimal = DecimalOf(number);
  const auto scaled =
      decimal ? Scaled(*decimal, days ? 0 : Shift(unit)) : tl::unexpected(Unfit::kTooLarge);
  const auto out_of_range = [&] {
    return tl::unexpected(
        fmt::format("is out of the years 1 to 9999 in {}: is that its unit?", WordOf(unit)));
  };
  if (!scaled && scaled.error() == Unfit::kFraction) {
    return tl::unexpected<std::string>(days ? "is not a whole number of days"
                                            : "is finer than a nanosecond");
  }
  if (!scaled || (days && (*scaled > kYear9999 || *scaled < kYear1))) return out_of_range();
  Wide seconds = days ? *scaled * kDay : *scaled / kNanos;
  Wide rest = days ? 0 : *scaled % kNanos;
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

tl::expected<void, std::string> MakeCellWhole(std::int64_t least, std::uint64_t most,
                                              std::string& text, std::size_t at) {
  const auto whole = Whole(std::string_view(text).substr(at), least, most);
  if (!whole) return tl::unexpected(whole.error());
  const auto digits = *whole < 0 ? fmt::format_int(static_cast<std::int64_t>(*whole)).str()
                                 : fmt::format_int(static_cast<std::uint64_t>(*whole)).str();
  text.replace(at, std::string::npos, digits);
  return {};
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
