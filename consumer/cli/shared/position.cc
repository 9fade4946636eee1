#include "consumer/cli/shared/position.h"

#include <charconv>

namespace fencepost::cli {
namespace {

// Cuts off what follows the last slash.
std::optional<std::string_view> TakeLast(std::string_view& text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view last = text.substr(slash + 1);
  text = text.substr(0, slash);
  return last;
}

template <typename Int>
bool Number(const std::optional<std::string_view>& digits, Int& value) {
  if (!digits) return false;
  const auto [end, error] = std::from_chars(digits->begin(), digits->end(), value);
  return error == std::errc() && end == digits->end() && value >= 0;
}

}  // namespace

std::optional<Position> ParsePosition(std::string_view text) {
  Position position;
  if (!Number(TakeLast(text), position.offset)) return std::nullopt;
  if (!Number(TakeLast(text), position.where.partition)) return std::nullopt;
  position.where.topic = text.substr(text.rfind('/') + 1);
  if (position.where.topic.empty()) return std::nullopt;
  return position;
}

}  // namespace fencepost::cli
