// Errors are values. One line for a person: what, where, what to do.
#pragma once

#include <string>
#include <utility>

namespace fencepost {

struct Error {
  std::string code;   // stable, for programs: "no_quorum", "contended", "bad_config", …
  std::string what;   // what went wrong, one line, no trailing period
  std::string where;  // FILE:LINE:COL, HOST:PORT, TOPIC/PARTITION/OFFSET; may be empty
  std::string hint;   // what to do about it; may be empty

  // "WHERE: WHAT; HINT", leaving out what is empty.
  [[nodiscard]] std::string Line() const {
    std::string line = where.empty() ? what : where + ": " + what;
    if (!hint.empty()) line += "; " + hint;
    return line;
  }
};

}  // namespace fencepost
