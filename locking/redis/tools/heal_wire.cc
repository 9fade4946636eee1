#include "locking/redis/tools/heal_wire.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "locking/redis/wire.h"

namespace fencepost::locking {
namespace {

constexpr std::size_t kMillisDigits = 13;
constexpr std::size_t kLengthDigits = 3;
constexpr Millis kLongest{999'999'999'999};

// Takes `size` characters off the front; nothing when there are fewer.
std::optional<std::string_view> Take(std::string_view& text, std::size_t size) {
  if (text.size() < size) return std::nullopt;
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

std::optional<std::int64_t> TakeNumber(std::string_view& text, std::size_t digits) {
  const auto taken = Take(text, digits);
  if (!taken) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(taken->begin(), taken->end(), value);
  if (error != std::errc() || end != taken->end()) return std::nullopt;
  return value;
}

}  // namespace

void FormatLook(std::span<const std::string> names, std::string& out) {
  AppendCallHead(LookScript(), 1 + names.size(), 0, out);
  for (const std::string& name : names) AppendBulk(name, out);
}

tl::expected<NodeSight, std::string> ParseLook(std::string_view payload, std::size_t names) {
  NodeSight sight;
  const auto time = TakeNumber(payload, kMillisDigits);
  const auto sentinel = Take(payload, kSentinelSize);
  if (!time || !sentinel) return tl::unexpected(std::string("look: the answer has no header"));
  sight.time = WallTime(Millis(*time));
  sight.sentinel = *sentinel;
  sight.values.reserve(names);
  for (std::size_t i = 0; i < names; ++i) {
    const auto size = TakeNumber(payload, kLengthDigits);
    const auto raw = size ? Take(payload, static_cast<std::size_t>(*size)) : std::nullopt;
    const auto left = raw ? TakeNumber(payload, kMillisDigits) : std::nullopt;
    if (!left) return tl::unexpected(fmt::format("look: value {} of {} is cut off", i, names));
    sight.values.push_back({std::string(*raw), Millis(*left)});
  }
  if (!payload.empty()) return tl::unexpected(fmt::format("look: more than {} values", names));
  return sight;
}

void FormatHeal(std::string_view sentinel, std::span<const HealWrite> writes, std::string& out) {
  AppendCallHead(HealScript(), 1 + writes.size(), 1 + 2 * writes.size(), out);
  for (const HealWrite& write : writes) AppendBulk(write.name, out);
  AppendBulk(sentinel, out);
  for (const HealWrite& write : writes) {
    AppendBulk(write.expected, out);
    const Millis left = std::clamp(write.left, Millis(1), kLongest);
    AppendBulk(fmt::format("{:013}{}", left.count(), write.value), out);
  }
}

tl::expected<std::vector<bool>, std::string> ParseHeal(std::string_view payload,
                                                       std::size_t writes) {
  const auto time = TakeNumber(payload, kMillisDigits);
  const bool good =
      time && payload.size() == writes && payload.find_first_not_of("WC") == std::string_view::npos;
  if (!good) return tl::unexpected(std::string("heal: the answer is not what the script says"));
  std::vector<bool> took_effect;
  for (const char letter : payload) took_effect.push_back(letter == 'W');
  return took_effect;
}

}  // namespace fencepost::locking
