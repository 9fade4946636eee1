#include "consumer/record/position_id.h"

#include <charconv>
#include <iterator>
#include <limits>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

// Cuts off the last slash and what follows it; false: there is none.
bool TakeLast(std::string_view& text, std::string_view& last) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return false;
  last = text.substr(slash + 1);
  text = text.substr(0, slash);
  return true;
}

// As it is written: digits, none of them a leading zero.
template <typename Int>
bool ReadNumber(std::string_view text, Int& value) {
  if (text.empty() || text.front() == '-' || (text.front() == '0' && text.size() > 1)) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<PositionId> ParsePositionId(std::string_view id) {
  PositionId position;
  std::string_view offset;
  std::string_view partition;
  if (!TakeLast(id, offset) || !TakeLast(id, partition) || !TakeLast(id, position.topic)) {
    return std::nullopt;
  }
  position.cluster = id;
  const bool named = !position.cluster.empty() && !position.topic.empty();
  if (!named || !ReadNumber(partition, position.partition) ||
      !ReadNumber(offset, position.offset)) {
    return std::nullopt;
  }
  return position;
}

void AppendPositionId(const PositionId& position, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}/{}/{}/{}", position.cluster, position.topic,
                 position.partition, position.offset);
}

std::string FormatPositionId(const PositionId& position) {
  std::string id;
  AppendPositionId(position, id);
  return id;
}

std::string BlockName(const PositionId& position, std::int64_t size) {
  if (size <= 1) return FormatPositionId(position);
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  const std::int64_t first = position.offset - position.offset % size;
  const std::int64_t last = first > kLast - (size - 1) ? kLast : first + (size - 1);
  return fmt::format("{}/{}/{}/{}-{}", position.cluster, position.topic, position.partition, first,
                     last);
}

std::string LockedId(std::string_view id, std::int64_t block) {
  const auto position = block > 1 ? ParsePositionId(id) : std::nullopt;
  return position ? BlockName(*position, block) : std::string(id);
}

}  // namespace fencepost::consumer
