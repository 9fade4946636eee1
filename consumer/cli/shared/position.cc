#include "consumer/cli/shared/position.h"

namespace fencepost::cli {
namespace {

// Cuts off what follows the last slash; empty: there is none.
std::string_view TakeLast(std::string_view& text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return "";
  const std::string_view last = text.substr(slash + 1);
  text = text.substr(0, slash);
  return last;
}

}  // namespace

std::optional<Position> ParsePosition(std::string_view text) {
  Position position;
  if (!ReadNumber(TakeLast(text), position.offset)) return std::nullopt;
  if (!ReadNumber(TakeLast(text), position.where.partition)) return std::nullopt;
  position.where.topic = text.substr(text.rfind('/') + 1);
  if (position.where.topic.empty()) return std::nullopt;
  return position;
}

}  // namespace fencepost::cli
