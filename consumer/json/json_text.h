// JSON as text (RFC 8259): whether a text is exactly one document, and bytes written as JSON, on
// one line. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fencepost::consumer {

// [-] (0 | 1-9 digits) [. digits] [e [+-] digits]: no leading zero, no bare point, no +.
bool IsJsonNumber(std::string_view text);

// Without JSON's white space around it.
std::string_view Trimmed(std::string_view text);

inline constexpr int kMostJsonLevels = 200;

// Empty: it is exactly one JSON document. Else why it is none: a sentence that holds nothing of the
// text ("it is cut off"). The one place that decides it; README.md has the verdicts.
std::string_view JsonProblem(std::string_view text, int most_levels = kMostJsonLevels);

// The elements of an array, which is valid JSON, as the bytes that the text has.
std::vector<std::string_view> JsonElements(std::string_view array);

// A string in quotes; `text` is valid UTF-8.
void AppendJsonString(std::string_view text, std::string& out);
std::string ToBase64(std::string_view bytes);
// UTF-8 as a string, other bytes as {"base64":"…"}.
void AppendJsonBytes(std::string_view bytes, std::string& out);

}  // namespace fencepost::consumer
