// What the requests of handlers say of a record, and what their answers may say of a failure. Pure;
// any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "consumer/record/record.h"

namespace fencepost::consumer {

// JSON as it is, on one line: a newline in it can only be a blank between two tokens.
void AppendJsonLine(std::string_view json, std::string& out);
// A member with a comma before it: the key as text, null, or null and key_base64.
void AppendJsonKey(const Record& record, std::string& out);

inline constexpr std::size_t kMaxFailureText = 1000;
// Of a failure: a word of a-z and _, or an HTTP status. It is shown, so it is no place for parts of
// a record.
bool IsFailureClass(std::string_view text);

}  // namespace fencepost::consumer
