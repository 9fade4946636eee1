#include "config/text/variables.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "locking/base/secret.h"

namespace fencepost::config {
namespace {

constexpr std::size_t kMaxSecretBytes = 1 << 20;

bool IsVariableName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// What is written between ${ and }.
tl::expected<std::string, ExpandProblem> Resolve(std::string_view inside, const Environment& env) {
  if (inside.starts_with("file:")) {
    const std::string path(inside.substr(5));
    auto text = env.read_file(path);
    if (!text && env.stand_in) return env.stand_in(path);
    if (!text)
      return tl::unexpected(ExpandProblem{fmt::format("${{file:{}}}: {}", path, text.error())});
    return WithoutMarks(std::move(*text));
  }
  const std::size_t dash = inside.find(":-");
  const std::string name(inside.substr(0, dash));
  if (!IsVariableName(name)) {
    return tl::unexpected(
        ExpandProblem{"what is in ${…} is no variable name; a literal ${ is written $${"});
  }
  std::optional<std::string> value = env.variable(name);
  if (dash != std::string_view::npos && (!value || value->empty())) {
    return std::string(inside.substr(dash + 2));
  }
  if (!value && env.stand_in) return env.stand_in(name);
  if (!value) {
    return tl::unexpected(ExpandProblem{
        fmt::format("the variable {} is not set; ${{{}:-default}} gives a default", name, name)});
  }
  return *value;
}

tl::expected<std::string, std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return tl::unexpected(fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string text(kMaxSecretBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) {
    return tl::unexpected(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxSecretBytes) return tl::unexpected<std::string>("is larger than 1 MiB");
  return text;
}

}  // namespace

Environment Environment::Process() {
  Environment environment;
  environment.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
  environment.read_file = ReadSmallFile;
  return environment;
}

tl::expected<std::string, ExpandProblem> Expand(std::string_view text, const Environment& env,
                                                Lines lines) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = std::min(text.find('$'), text.size());
    out.append(text.substr(0, dollar));
    text.remove_prefix(dollar);
    if (text.starts_with("$${")) {
      out.append("${");
      text.remove_prefix(3);
    } else if (text.starts_with("${")) {
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) {
        return tl::unexpected(ExpandProblem{"a ${ has no }; a literal ${ is written $${"});
      }
      const std::string_view inside = text.substr(2, end - 2);
      const auto value = Resolve(inside, env);
      if (!value) return tl::unexpected(value.error());
      const std::string_view problem = lines == Lines::kOne ? ProblemOfLine(*value) : "";
      if (!problem.empty()) {
        const std::string_view name = inside.substr(0, inside.find(":-"));
        return tl::unexpected(ExpandProblem{fmt::format("${{{}}} {}", name, problem), "value"});
      }
      out.append(*value);
      text.remove_prefix(end + 1);
    } else if (!text.empty()) {
      out.push_back('$');
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace fencepost::config
