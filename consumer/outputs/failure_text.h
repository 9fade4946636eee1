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
// What is behind an error of this class as a rule, " (…)"; empty: nothing that is known.
std::string_view UsualCause(std::string_view sqlstate);

// What PostgreSQL tells about an error; empty: nothing.
struct PgErrorFields {
  std::string sqlstate;
  std::string message;
  std::string context;
  std::string schema;
  std::string table;
  std::string column;
  std::string constraint;
  std::string datatype;
};

// The same without anything of a record: the beginning of PostgreSQL's own message or, where a
// function or an extension wrote the message, the condition's name; and the names of what refused.
// Never the DETAIL, which holds whole rows.
std::string WithoutRecord(const PgErrorFields& fields);

}  // namespace fencepost::consumer
