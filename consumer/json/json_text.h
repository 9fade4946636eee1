// JSON as text (RFC 8259): whether a text is exactly one document, and bytes written as JSON, on
// one line. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace fencepost::consumer {

// [-] (0 | 1-9 digits) [. digits] [e [+-] digits]: no leading zero, no bare point, no +.
bool IsJsonNumber(std::string_view text);

// Without JSON's white space around it.
std::string_view Trimmed(std::string_view text);

struct JsonVerdict {
  // Empty: it is one document. Else a sentence that holds nothing of the text ("it is cut off").
  std::string_view problem;
  // A string has half a surrogate pair as an escape: JSON by its grammar, but it stands for no
  // text.
  bool half_pairs = false;
};

// Whether it is exactly one JSON document, and if not, why: the one place that decides it. All but
// whether it is UTF-8. At most 1024 levels deep.
JsonVerdict CheckJson(std::string_view text);

// A string in quotes; `text` is valid UTF-8.
void AppendJsonString(std::string_view text, std::string& out);
std::string ToBase64(std::string_view bytes);
// UTF-8 as a string, other bytes as {"base64":"…"}.
void AppendJsonBytes(std::string_view bytes, std::string& out);

}  // namespace fencepost::consumer
