#include "consumer/outputs/rows/kept_values.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include <simdjson.h>

#include "consumer/decode/avro_text.h"
#include "consumer/outputs/rows/cell_values.h"

namespace fencepost::consumer {
namespace {

namespace dom = simdjson::dom;

// As Java's UUID.nameUUIDFromBytes.
std::string NameUuid(std::string_view name) {
  std::array<unsigned char, 16> md5{};
  EVP_Digest(name.data(), name.size(), md5.data(), nullptr, EVP_md5(), nullptr);
  md5[6] = (md5[6] & 0x0f) | 0x30;
  md5[8] = (md5[8] & 0x3f) | 0x80;
  std::string uuid;
  avro::AppendUuid({reinterpret_cast<const char*>(md5.data()), md5.size()}, uuid);
  return uuid;
}

bool IsText(std::string_view kept, std::string_view text, Conversion encoding) {
  if (text == kept) return true;
  return encoding != Conversion::kNone && text.size() <= 2 * kept.size() + 2 &&
         Decoded(text, encoding) == kept;
}

// A number, or a decimal's bytes in base64.
bool IsByte(char byte, dom::element value) {
  double number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number == byte;
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS &&
         Decoded(text, Conversion::kBase64) == std::string(1, byte);
}

bool IsArray(std::string_view kept, dom::array values, Conversion encoding) {
  std::string_view only;
  if (values.size() == 1 && values.at(0).get(only) == simdjson::SUCCESS) {
    return IsText(kept, only, encoding) || only == NameUuid(kept);
  }
  return values.size() == kept.size() &&
         std::equal(kept.begin(), kept.end(), values.begin(), IsByte);
}

bool IsMap(std::string_view kept, dom::object members) {
  std::string_view value;
  return members.size() == 1 && (*members.begin()).key == kept &&
         members.at_key(kept).get(value) == simdjson::SUCCESS && value == kept;
}

}  // namespace

bool IsKept(const std::vector<std::string>& keep, std::optional<JsonType> type,
            std::string_view cell, Conversion encoding) {
  constexpr std::size_t kMostOfByte = 32;  // of JSON
  const auto is = [&](std::string_view kept) {
    const bool text = !type || *type == JsonType::kString;
    if (text && IsText(kept, cell, encoding)) return true;
    const bool parts = type == JsonType::kArray || type == JsonType::kObject ||
                       (type == JsonType::kString && cell.starts_with('{'));  // a map as a text
    if (!parts || cell.size() > kMostOfByte * (kept.size() + 2)) return false;
    thread_local simdjson::dom::parser parser;
    dom::element value;
    if (parser.parse(cell.data(), cell.size()).get(value) != simdjson::SUCCESS) return false;
    dom::array values;
    dom::object members;
    if (value.get(values) == simdjson::SUCCESS) return IsArray(kept, values, encoding);
    return value.get(members) == simdjson::SUCCESS && IsMap(kept, members);
  };
  return std::ranges::any_of(keep, is);
}

}  // namespace fencepost::consumer
