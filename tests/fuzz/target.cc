#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "consumer/record/text.h"

namespace fencepost::fuzz {

std::string_view Parts::Line() {
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  const std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  return line;
}

bool IsOneLine(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (byte < 0x20 || byte == 0x7f || c1) return false;
  }
  return consumer::IsUtf8(text);
}

std::string Shown(std::string_view bytes) {
  std::string shown;
  for (const char c : bytes) {
    const bool plain = c >= ' ' && c <= '~' && c != '\\';
    shown += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return shown;
}

}  // namespace fencepost::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fencepost::fuzz::OneInput({reinterpret_cast<const char*>(data), size});
  return 0;
}
