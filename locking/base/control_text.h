// Characters that steer a terminal or end a line: C0, DEL, and the C1 controls, which are two bytes
// in UTF-8 and obeyed by terminals just as well. For all that is shown of what came from elsewhere.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace fencepost {

// Bytes of the control that `text` begins with; 0: it begins with none.
constexpr std::size_t ControlSize(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 || first == 0x7f) return 1;
  if (first != 0xc2 || text.size() < 2) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  return second >= 0x80 && second < 0xa0 ? 2 : 0;
}

}  // namespace fencepost
