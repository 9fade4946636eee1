#include "consumer/handlers/call_text.h"

#include <algorithm>

#include "consumer/json/json_text.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {

void AppendJsonLine(std::string_view json, std::string& out) {
  const auto from = static_cast<std::ptrdiff_t>(out.size());
  out.append(Trimmed(json));
  std::replace(out.begin() + from, out.end(), '\n', ' ');
  std::replace(out.begin() + from, out.end(), '\r', ' ');
}

void AppendJsonKey(const Record& record, std::string& out) {
  out.append(",\"key\":");
  if (!record.key) {
    out.append("null");
  } else if (IsUtf8(*record.key)) {
    AppendJsonString(*record.key, out);
  } else {
    out.append("null,\"key_base64\":");
    AppendJsonString(ToBase64(*record.key), out);
  }
}

bool IsFailureClass(std::string_view text) {
  constexpr std::size_t kMaxClass = 64;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  if (text.size() == 3 && std::ranges::all_of(text, digit)) return true;
  return !text.empty() && text.size() <= kMaxClass && std::ranges::all_of(text, letter);
}

}  // namespace fencepost::consumer
