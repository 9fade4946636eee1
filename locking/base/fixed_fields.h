// Texts whose fields have fixed widths, as the nodes' values, the scripts' arguments and their
// answers have them: fields appended to a text, and taken off the front of one. Pure values; any
// thread.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "locking/base/check.h"
#include "locking/base/types.h"

namespace fencepost::locking {

inline constexpr std::size_t kMillisDigits = 13;
inline constexpr Millis kLongestField{999'999'999'999};  // a duration that a script still adds up
inline constexpr std::size_t kInstantDigits = 11;        // hexadecimal, as the next two
inline constexpr std::size_t kTokenDigits = 16;
inline constexpr std::size_t kCrcDigits = 16;

inline void AppendPadded(std::uint64_t value, std::size_t digits, std::string& out) {
  std::array<char, 20> text{};
  FENCEPOST_CHECK(digits <= text.size(), "digits");
  for (std::size_t i = digits; i-- > 0; value /= 10) text[i] = static_cast<char>('0' + value % 10);
  FENCEPOST_CHECK(value == 0, "a number does not fit its field");
  out.append(text.data(), digits);
}

// Cut to what fits.
inline void AppendMillis(Millis value, std::string& out) {
  const Millis cut = std::clamp(value, Millis(0), kLongestField);
  AppendPadded(static_cast<std::uint64_t>(cut.count()), kMillisDigits, out);
}

inline void AppendHex(std::uint64_t value, std::size_t digits, std::string& out) {
  std::array<char, 16> text{};
  for (std::size_t i = digits; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  out.append(text.data(), digits);
}

// Its bytes as they are, the highest first.
inline void AppendBytes(const Nonce& nonce, std::string& out) {
  std::array<char, Nonce::kBytes> bytes{};
  std::size_t at = 0;
  for (const std::uint64_t half : nonce.bits) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes[at++] = static_cast<char>(half >> shift);
  }
  out.append(bytes.data(), bytes.size());
}

// Takes fields off the front of a text. Once one is wrong, good() stays false, and what is taken
// means nothing.
class FixedFields {
 public:
  explicit FixedFields(std::string_view text) : rest_(text) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  // All fields were good, and nothing is left.
  [[nodiscard]] bool Complete() const { return good_ && rest_.empty(); }

  std::string_view Take(std::size_t size) {
    if (rest_.size() < size) good_ = false;
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(text.size());
    return text;
  }
  char Letter() {
    const std::string_view text = Take(1);
    return text.empty() ? '\0' : text[0];
  }
  std::uint64_t Number(std::size_t digits, int base = 10) {
    const std::string_view text = Take(digits);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value, base);
    if (error != std::errc() || end != text.end()) good_ = false;
    return good_ ? value : 0;
  }
  Millis Duration(std::size_t digits = kMillisDigits) {
    return Millis(static_cast<std::int64_t>(Number(digits)));
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace fencepost::locking
