// Small changes of text that the handlers share. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fencepost::consumer {

bool IsUtf8(std::string_view bytes);

// Any bytes as one line of at most `max_bytes` bytes of UTF-8: runs of blanks and control
// characters become one blank, what is not UTF-8 becomes '?', and what is cut off ends in "...".
std::string OneLine(std::string_view bytes, std::size_t max_bytes = 200);

std::string Lower(std::string_view text);  // of ASCII
// ASCII without blanks, at least one character: it may stand in a header's line.
bool IsVisible(std::string_view text);

std::optional<std::string> FromBase64(std::string_view text);  // nullopt: it is not base64

}  // namespace fencepost::consumer
