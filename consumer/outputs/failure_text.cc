#include "consumer/outputs/failure_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

constexpr std::array<std::string_view, 14> kQuotes{"\"", "'", "`", "0x", "«",  "»",  "„",
                                                   "“",  "”", "‘", "’",  "「", "『", "‹"};

}  // namespace

std::string ErrorText(std::string_view text) { return OneLine(text, kMaxErrorText); }

std::string BeforeQuotes(std::string_view message) {
  std::size_t end = std::string_view::npos;
  for (const std::string_view quote : kQuotes) end = std::min(end, message.find(quote));
  if (end == std::string_view::npos) return ErrorText(message);
  std::string_view beginning = message.substr(0, end);
  while (!beginning.empty() && (beginning.back() == ' ' || beginning.back() == '(')) {
    beginning.remove_suffix(1);
  }
  if (beginning.empty()) return "";
  return ErrorText(fmt::format("{} …", beginning));
}

std::string WithoutNumbers(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace fencepost::consumer
