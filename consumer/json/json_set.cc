#include "consumer/json/json_set.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/json/json_text.h"

namespace fencepost::consumer {
namespace {

// The first token of a pointer as the name that it stands for; the pointer is what follows.
std::string TakeName(std::string_view& pointer) {
  std::size_t at = 1;
  std::string name;
  for (; at < pointer.size() && pointer[at] != '/'; ++at) {
    if (pointer[at] != '~') {
      name += pointer[at];
    } else {
      name += pointer[++at] == '1' ? '/' : '~';
    }
  }
  pointer.remove_prefix(at);
  return name;
}

// Walks over a valid text.
class Cursor {
 public:
  Cursor(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] char Here() const { return text_[at_]; }
  void Step() { ++at_; }
  void Space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  // Behind the comma and the blanks after it, if there is one.
  void Comma() {
    Space();
    if (Here() != ',') return;
    ++at_;
    Space();
  }
  std::string_view String() {
    const std::size_t begin = at_++;
    for (; text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
    ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::string_view Value() {
    const std::size_t begin = at_;
    if (Here() == '"') return String();
    if (Here() != '{' && Here() != '[') {
      at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
      return text_.substr(begin, at_ - begin);
    }
    int open = 0;
    do {
      const char c = Here();
      if (c == '"') {
        String();
        continue;
      }
      open += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      ++at_;
    } while (open > 0);
    return text_.substr(begin, at_ - begin);
  }

 private:
  std::string_view text_;
  std::size_t at_;
};

bool Names(std::string_view key, std::string_view name) {
  if (key.find('\\') != std::string_view::npos) return nlohmann::json::parse(key) == name;
  return key.substr(1, key.size() - 2) == name;
}

std::optional<std::string_view> MemberOf(std::string_view object, std::string_view name) {
  Cursor cursor(object, 1);
  for (cursor.Space(); cursor.Here() != '}'; cursor.Comma()) {
    const std::string_view key = cursor.String();
    cursor.Space();
    cursor.Step();
    cursor.Space();
    const std::string_view value = cursor.Value();
    if (Names(key, name)) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> ElementOf(std::string_view array, const std::string& name) {
  std::size_t index = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data(), end, index);
  const bool canonical = read.ec == std::errc() && read.ptr == end && std::to_string(index) == name;
  if (!canonical) return std::nullopt;
  Cursor cursor(array, 1);
  for (cursor.Space(); cursor.Here() != ']'; cursor.Comma()) {
    const std::string_view value = cursor.Value();
    if (index-- == 0) return value;
  }
  return std::nullopt;
}

// `text` with `made` for the bytes of `part`.
std::string Replaced(std::string_view text, std::string_view part, std::string_view made) {
  const auto at = static_cast<std::size_t>(part.data() - text.data());
  return std::string(text.substr(0, at)).append(made).append(text.substr(at + part.size()));
}

// A member of that name, in which the rest of the pointer leads to the value.
void AppendMember(const std::string& name, std::string_view rest, std::string_view value,
                  std::string& out) {
  AppendJsonString(name, out);
  out += ':';
  if (rest.empty()) {
    out += value;
    return;
  }
  out += '{';
  const std::string next = TakeName(rest);
  AppendMember(next, rest, value, out);
  out += '}';
}

}  // namespace

tl::expected<std::string, std::string> SetJsonPart(std::string_view text, std::string_view pointer,
                                                   std::string_view value) {
  if (const std::string_view why = JsonProblem(text); !why.empty()) {
    return tl::unexpected(fmt::format("the value is not valid JSON: {}", why));
  }
  std::string_view part = Trimmed(text);
  std::string_view rest = pointer;
  while (!rest.empty()) {
    const std::string_view here = pointer.substr(0, pointer.size() - rest.size());
    const std::string name = TakeName(rest);
    const bool object = part.front() == '{';
    const auto child = object                ? MemberOf(part, name)
                       : part.front() == '[' ? ElementOf(part, name)
                                             : std::nullopt;
    if (!child && !object) {
      return tl::unexpected(fmt::format("{} is no object, which alone takes a new name",
                                        here.empty() ? "the value" : here));
    }
    if (child) {
      part = *child;
      continue;
    }
    // Behind the last member.
    const std::string_view members = Trimmed(part.substr(1, part.size() - 2));
    std::string made = members.empty() ? "" : ",";
    AppendMember(name, rest, value, made);
    const char* const end = members.empty() ? part.data() + 1 : members.data() + members.size();
    return Replaced(text, {end, 0}, made);
  }
  return Replaced(text, part, value);
}

}  // namespace fencepost::consumer
