// Bytes written as JSON (RFC 8259), on one line. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace fencepost::consumer {

// A string in quotes; `text` is valid UTF-8.
void AppendJsonString(std::string_view text, std::string& out);
std::string ToBase64(std::string_view bytes);
// UTF-8 as a string, other bytes as {"base64":"…"}.
void AppendJsonBytes(std::string_view bytes, std::string& out);

}  // namespace fencepost::consumer
