#include "consumer/cli/shared/bytes_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/record/text.h"
#include "locking/base/control_text.h"

namespace fencepost::cli {
namespace {

// The most bytes up to `most` that do not end inside a character.
std::string_view CutBetweenCharacters(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace

bool IsText(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (ControlSize(bytes.substr(at)) > 0 && bytes[at] != '\n' && bytes[at] != '\t') return false;
  }
  return consumer::IsUtf8(bytes);
}

std::string Quoted(std::optional<std::string_view> bytes, std::size_t most) {
  if (!bytes) return "null";
  if (!IsText(*bytes)) {
    const std::string_view shown = bytes->substr(0, most);
    return fmt::format("base64:{}{}", consumer::ToBase64(shown),
                       shown.size() < bytes->size() ? "…" : "");
  }
  const std::string_view shown = CutBetweenCharacters(*bytes, most);
  std::string text = "\"";
  for (const char c : shown) {
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else {
      text += c;
    }
  }
  return text + (shown.size() < bytes->size() ? "…\"" : "\"");
}

std::string Printable(std::string_view text, std::size_t most) {
  const bool valid = consumer::IsUtf8(text);
  const std::string_view shown = valid ? CutBetweenCharacters(text, most) : text.substr(0, most);
  std::string line;
  for (std::size_t at = 0; at < shown.size(); ++at) {
    const std::size_t control = ControlSize(shown.substr(at));
    const bool bad = control > 0 || (!valid && static_cast<unsigned char>(shown[at]) > 0x7f);
    line += bad ? '?' : shown[at];
    if (control > 1) at += control - 1;
  }
  if (shown.size() < text.size()) line += "…";
  return line;
}

nlohmann::json JsonOf(std::optional<std::string_view> bytes) {
  if (!bytes) return nullptr;
  if (consumer::IsUtf8(*bytes)) return std::string(*bytes);
  return {{"base64", consumer::ToBase64(*bytes)}};
}

}  // namespace fencepost::cli
