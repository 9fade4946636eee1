// Environment variables and files in a pipeline file: ${VAR}, ${VAR:-default} and ${file:PATH} are
// replaced by what they name. Values in, values out; any thread.
#pragma once

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

  static Environment Process();  // getenv and the file system (at most 1 MiB a file)
};

// Replaces ${VAR}, ${VAR:-default} (where VAR is unset or empty), ${file:/path} (without the line
// ends at its end) and $${ (a literal ${), once: what is put in is not looked at again. The error
// names the variable or the file, never a value.
tl::expected<std::string, std::string> Expand(std::string_view text,
                                              const Environment& environment);

}  // namespace fencepost::config
