#include "consumer/handlers/jq/jq_memory.h"

#include <vector>

namespace fencepost::consumer {
namespace {

// Of libjq 1.6, with what malloc adds. What grows is there twice for a moment; the bytes of its
// text count for some of that.
constexpr std::size_t kObject = 416;  // with room for 8 members
constexpr std::size_t kMember = 104;  // one more
constexpr std::size_t kArray = 288;   // with room for 16 elements
constexpr std::size_t kElement = 32;  // one more
constexpr std::size_t kText = 40;     // beside its bytes
constexpr std::size_t kByte = 4;      // of any text: read, printed and copied

struct Open {
  bool object = false;
  std::size_t commas = 0;
  [[nodiscard]] std::size_t More() {
    const std::size_t room = object ? 8 : 16;
    return ++commas < room ? 0 : object ? kMember : kElement;
  }
};

// Behind the string that begins at `at`.
std::size_t EndOfString(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return at;
}

}  // namespace

std::size_t JqMemoryOf(std::string_view json) {
  std::size_t bytes = kByte * json.size();
  std::vector<Open> open;
  for (std::size_t at = 0; at < json.size(); ++at) {
    switch (json[at]) {
      case '"':
        at = EndOfString(json, at);
        bytes += kText;
        break;
      case '{':
      case '[':
        open.push_back({.object = json[at] == '{'});
        bytes += open.back().object ? kObject : kArray;
        break;
      case '}':
      case ']':
        open.pop_back();
        break;
      case ',':
        bytes += open.back().More();
        break;
      default:
        break;
    }
  }
  return bytes;
}

}  // namespace fencepost::consumer
