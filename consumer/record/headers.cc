#include "consumer/record/headers.h"

#include <algorithm>
#include <unordered_set>

namespace fencepost::consumer {

std::vector<HeaderView> LastOfEachName(const std::vector<HeaderView>& headers) {
  std::vector<HeaderView> last;
  std::unordered_set<std::string_view> names;
  for (auto header = headers.rbegin(); header != headers.rend(); ++header) {
    if (names.insert(header->name).second) last.push_back(*header);
  }
  std::ranges::reverse(last);
  return last;
}

bool SameHeader(std::string_view name, std::string_view lower) {
  return std::ranges::equal(name, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

bool IsTraceHeader(std::string_view name) {
  constexpr std::string_view kB3 = "x-b3-";
  return SameHeader(name, "traceparent") || SameHeader(name, "tracestate") ||
         SameHeader(name, "b3") || SameHeader(name.substr(0, kB3.size()), kB3);
}

}  // namespace fencepost::consumer
