#include "locking/core/unit_value.h"

#include "locking/base/fixed_fields.h"

namespace fencepost::locking {
std::string UnitValue::Encode() const {
  std::string text;
  switch (state) {
    case State::kHeld:
      text = 'H';
      AppendHex(static_cast<std::uint64_t>(deadline.time_since_epoch().count()), kInstantDigits,
                text);
      AppendHex(token.value(), kTokenDigits, text);
      AppendBytes(nonce, text);
      if (floor != token) AppendHex(floor.value(), kTokenDigits, text);
      break;
    case State::kFree:
      text = 'F';
      AppendHex(floor.value(), kTokenDigits, text);
      break;
    case State::kDone:
      text = 'D';
      AppendHex(token.value(), kTokenDigits, text);
      AppendHex(crc, kCrcDigits, text);
      break;
  }
  return text;
}

std::optional<UnitValue> UnitValue::Decode(std::string_view text) {
  UnitValue value;
  FixedFields fields(text);
  const auto hex = [&](std::size_t digits) { return fields.Number(digits, 16); };
  switch (fields.Letter()) {
    case 'H':
      value.state = State::kHeld;
      value.deadline = WallTime(Millis(static_cast<std::int64_t>(hex(kInstantDigits))));
      value.token = Token(hex(kTokenDigits));
      for (std::uint64_t& half : value.nonce.bits) half = fields.Bytes8();
      value.floor = fields.rest().empty() ? value.token : Token(hex(kTokenDigits));
      break;
    case 'F':
      value.state = State::kFree;
      value.floor = Token(hex(kTokenDigits));
      break;
    case 'D':
      value.state = State::kDone;
      value.token = Token(hex(kTokenDigits));
      value.crc = static_cast<ContentCrc>(hex(kCrcDigits));
      break;
    default:
      return std::nullopt;
  }
  return fields.Complete() && value.Encode() == text ? std::optional(value) : std::nullopt;
}

}  // namespace fencepost::locking
