// What a database says about a failure, in two texts: one for the record's dead letter, which may
// hold parts of the record, and one that holds nothing of it, for the log, /status and exit
// messages. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace fencepost::consumer {

// PostgreSQL quotes the whole value that it refuses, and a dead letter must stay publishable.
inline constexpr std::size_t kMaxErrorText = 1000;

// Any bytes as one line of at most kMaxErrorText bytes of UTF-8.
std::string ErrorText(std::string_view text);

// The beginning of a message up to where it quotes a value (in quotes of any language, or as bytes
// 0x…); what is cut off ends in "…". Databases quote names and values alike.
std::string BeforeQuotes(std::string_view message);

// The same of refusals for the same reason, whatever sizes and counts they name.
std::string WithoutNumbers(std::string text);

}  // namespace fencepost::consumer
