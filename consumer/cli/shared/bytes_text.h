// Bytes of records on a terminal and in JSON: text as it is, anything else encoded, and nothing
// that could steer the terminal. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace fencepost::cli {

// Valid UTF-8 without control characters, but for newlines and tabs.
bool IsText(std::string_view bytes);
// In quotes and on one line ("\n" escaped), at most `most` bytes of it; "null" for nothing; what is
// not text as base64:… .
std::string Quoted(std::optional<std::string_view> bytes, std::size_t most = 200);
// A line that came from elsewhere (an error, a header): control characters and broken UTF-8 become
// '?'; at most `most` bytes, cut between characters.
std::string Printable(std::string_view text, std::size_t most = 300);
// Text as a string, other bytes as {"base64": "…"}, nothing as null.
nlohmann::json JsonOf(std::optional<std::string_view> bytes);

}  // namespace fencepost::cli
