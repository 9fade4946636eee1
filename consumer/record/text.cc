#include "consumer/record/text.h"

#include <algorithm>
#include <bit>

#include <openssl/evp.h>
#include <simdjson.h>

#include "locking/base/control_text.h"

namespace fencepost::consumer {
namespace {

constexpr std::string_view kCut = "...";

// Bytes of the UTF-8 character that `text` begins with; 0: it begins with none.
std::size_t CharacterSize(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return 1;
  const auto size = static_cast<std::size_t>(std::countl_one(lead));
  return size >= 2 && size <= text.size() && IsUtf8(text.substr(0, size)) ? size : 0;
}

bool IsBlank(std::string_view character) { return character == " " || ControlSize(character) > 0; }

}  // namespace

bool IsUtf8(std::string_view bytes) { return simdjson::validate_utf8(bytes.data(), bytes.size()); }

std::string OneLine(std::string_view bytes, std::size_t max_bytes) {
  std::string line;
  std::size_t fits = 0;  // how much of `line` may stay when the mark of a cut must follow
  bool blank = false;
  while (!bytes.empty()) {
    const std::size_t size = std::max<std::size_t>(CharacterSize(bytes), 1);
    const std::string_view character =
        CharacterSize(bytes) == 0 ? std::string_view("?") : bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (IsBlank(character)) {
      blank = !line.empty();
      continue;
    }
    if (line.size() + kCut.size() <= max_bytes) fits = line.size();
    if (line.size() + (blank ? 1 : 0) + character.size() > max_bytes) {
      line.resize(fits);
      return line.append(kCut.substr(0, max_bytes - fits));
    }
    if (blank) line.push_back(' ');
    blank = false;
    line.append(character);
  }
  return line;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

bool IsVisible(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.empty()) return "";
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  const std::string_view digits = text.substr(0, text.size() - padding);
  const auto is_digit = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
  };
  if (!std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

}  // namespace fencepost::consumer
