#include "locking/core/unit_value.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace fencepost::locking {
namespace {

constexpr std::size_t kInstantDigits = 11;
constexpr std::size_t kTokenDigits = 16;
constexpr std::size_t kCrcDigits = 8;
constexpr std::size_t kNonceHalf = 8;  // bytes as they are, the highest first

// Takes fixed-width fields off the front of a text. Once one is wrong, `good` stays false.
struct Fields {
  std::string_view rest;
  bool good = true;

  std::string_view Bytes(std::size_t size) {
    good = good && rest.size() >= size;
    if (!good) return {};
    const std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }
  std::uint64_t Hex(std::size_t size) {
    const std::string_view digits = Bytes(size);
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
    const bool lower =
        std::none_of(digits.begin(), digits.end(), [](char c) { return c >= 'A' && c <= 'F'; });
    good = good && error == std::errc() && stop == end && lower;
    return good ? value : 0;
  }
  Token TakeToken() { return Token(Hex(kTokenDigits)); }
  std::uint64_t TakeHalf() {
    std::uint64_t half = 0;
    for (const char c : Bytes(kNonceHalf)) half = half << 8 | static_cast<unsigned char>(c);
    return half;
  }
};

void AppendHalf(std::uint64_t half, std::string& out) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(half >> shift));
}

}  // namespace

std::string UnitValue::Encode() const {
  std::string text;
  switch (state) {
    case State::kHeld:
      text = fmt::format("H{:011x}{:016x}", deadline.time_since_epoch().count(), token.value());
      for (const std::uint64_t half : nonce.bits) AppendHalf(half, text);
      if (floor != token) text += fmt::format("{:016x}", floor.value());
      break;
    case State::kFree:
      text = fmt::format("F{:016x}", floor.value());
      break;
    case State::kDone:
      text = fmt::format("D{:016x}{:08x}", token.value(), crc);
      break;
  }
  return text;
}

std::optional<UnitValue> UnitValue::Decode(std::string_view text) {
  if (text.empty()) return std::nullopt;
  UnitValue value;
  Fields fields{text.substr(1)};
  switch (text.front()) {
    case 'H':
      value.state = State::kHeld;
      value.deadline = WallTime(Millis(static_cast<std::int64_t>(fields.Hex(kInstantDigits))));
      value.token = fields.TakeToken();
      for (std::uint64_t& half : value.nonce.bits) half = fields.TakeHalf();
      value.floor = fields.rest.empty() ? value.token : fields.TakeToken();
      break;
    case 'F':
      value.state = State::kFree;
      value.floor = fields.TakeToken();
      break;
    case 'D':
      value.state = State::kDone;
      value.token = fields.TakeToken();
      value.crc = static_cast<ContentCrc>(fields.Hex(kCrcDigits));
      break;
    default:
      return std::nullopt;
  }
  if (!fields.good || !fields.rest.empty()) return std::nullopt;
  return value;
}

Token UnitValue::Highest() const {
  return state == State::kHeld ? std::max(token, floor) : state == State::kFree ? floor : token;
}

}  // namespace fencepost::locking
