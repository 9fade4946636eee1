#include "consumer/outputs/ledger/position_ranges.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

bool Take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

bool Take(std::string_view& text, Offset& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

void PositionRanges::Add(Offset begin, Offset end) {
  FENCEPOST_CHECK(begin <= end, "a range ends before it begins");
  if (begin == end) return;
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
  while (at != ranges_.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ranges_.erase(at);
  }
  ranges_.emplace_hint(at, begin, end);
}

void PositionRanges::Add(const PositionRanges& other) {
  for (const auto& [begin, end] : other.ranges_) Add(begin, end);
}

void PositionRanges::Remove(Offset begin, Offset end) {
  if (begin >= end) return;
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second > begin) --at;
  while (at != ranges_.end() && at->first < end) {
    const auto [from, to] = *at;
    at = ranges_.erase(at);
    if (from < begin) ranges_.emplace(from, begin);
    if (to > end) at = ranges_.emplace(end, to).first;
    if (to >= end) return;
  }
}

std::vector<PositionRange> PositionRanges::all() const {
  std::vector<PositionRange> all;
  for (const auto& [begin, end] : ranges_) all.push_back({begin, end});
  return all;
}

bool PositionRanges::Contains(Offset offset) const {
  const auto behind = ranges_.upper_bound(offset);
  return behind != ranges_.begin() && offset < std::prev(behind)->second;
}

PositionRanges PositionRanges::Minus(const PositionRanges& other) const {
  PositionRanges left = *this;
  for (const auto& [begin, end] : other.ranges_) left.Remove(begin, end);
  return left;
}

std::uint64_t PositionRanges::CountOffsets() const {
  std::uint64_t count = 0;
  for (const auto& [begin, end] : ranges_) {
    count += static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin);
  }
  return count;
}

std::string PositionRanges::Text() const {
  std::string text = "{";
  for (const auto& [begin, end] : ranges_) {
    fmt::format_to(std::back_inserter(text), "{}[{},{})", text.size() == 1 ? "" : ",", begin, end);
  }
  return text + '}';
}

std::optional<PositionRanges> PositionRanges::Parse(std::string_view text) {
  const std::string_view whole = text;
  PositionRanges ranges;
  if (!Take(text, '{')) return std::nullopt;
  while (!Take(text, '}')) {
    Offset begin = 0;
    Offset end = 0;
    if (!ranges.empty() && !Take(text, ',')) return std::nullopt;
    if (!Take(text, '[') || !Take(text, begin) || !Take(text, ',') || !Take(text, end) ||
        !Take(text, ')') || begin >= end ||
        (!ranges.empty() && ranges.ranges_.rbegin()->second >= begin)) {
      return std::nullopt;
    }
    ranges.ranges_.emplace_hint(ranges.ranges_.end(), begin, end);
  }
  // Numbers can be written in other ways.
  return text.empty() && ranges.Text() == whole ? std::optional(std::move(ranges)) : std::nullopt;
}

}  // namespace fencepost::consumer
