// Whether a text is exactly one JSON document (RFC 8259), and if not, why. The one place where that
// is decided. Pure; any thread.
#pragma once

#include <string_view>

namespace fencepost::consumer {

// [-] (0 | 1-9 digits) [. digits] [e [+-] digits]: no leading zero, no bare point, no +.
bool IsJsonNumber(std::string_view text);

struct JsonVerdict {
  // Empty: it is one document. Else a sentence that holds nothing of the text ("it is cut off").
  std::string_view problem;
  // A string has half a surrogate pair as an escape: JSON by its grammar, but it stands for no
  // text.
  bool half_pairs = false;
};

// All but whether it is UTF-8. At most 1024 levels deep.
JsonVerdict CheckJson(std::string_view text);

}  // namespace fencepost::consumer
