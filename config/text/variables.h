// Environment variables and files in a pipeline file: ${VAR}, ${VAR:-default} and ${file:PATH} are
// replaced by what they name. Values in, values out; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace fencepost::config {

// Where ${VAR} and ${file:PATH} come from.
struct Environment {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // The error says why the file cannot be read, in a few words.
  std::function<tl::expected<std::string, std::string>(const std::string& path)> read_file;

  // What stands for a variable without a value and a default, or for a file that cannot be read.
  // Null: that is an error.
  std::function<std::string(const std::string& name)> stand_in{};
  // The keys that may have one, by their paths. Null: all.
  std::function<bool(std::string_view path)> may_stand_in{};

  static Environment Process();  // getenv and the file system (at most 1 MiB a file)
};

// What may be put in. A single line has no line break, no NUL, no byte order mark at its beginning
// and no blank at either end: those come from editors and CRLF files, and a login would count them.
enum class Lines : std::uint8_t { kOne, kMany };

struct ExpandProblem {
  std::string text;  // names the variable or the file, never a value
  std::string_view rule = "variable";
};

// Replaces ${VAR}, ${VAR:-default} (where VAR is unset or empty), ${file:/path} and $${ (a literal
// ${), once: what is put in is not looked at again. Of a file a byte order mark and the line ends
// at its end are left out, and CRLF is read as LF.
tl::expected<std::string, ExpandProblem> Expand(std::string_view text,
                                                const Environment& environment, Lines lines);

}  // namespace fencepost::config
