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

}  // namespace fencepost::consumer
