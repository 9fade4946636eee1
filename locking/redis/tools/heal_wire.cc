#include "locking/redis/tools/heal_wire.h"

#include <algorithm>

#include <fmt/format.h>

#include "locking/base/fixed_fields.h"
#include "locking/redis/wire.h"

namespace fencepost::locking {
namespace {

constexpr std::size_t kLengthDigits = 3;

}  // namespace

void FormatLook(std::span<const std::string> names, std::string& out) {
  AppendCallHead(ScriptNamed("look"), 1 + names.size(), 0, out);
  for (const std::string& name : names) AppendBulk(name, out);
}

tl::expected<NodeSight, std::string> ParseLook(std::string_view payload, std::size_t names) {
  FixedFields fields(payload);
  NodeSight sight;
  sight.time = WallTime(fields.Duration());
  sight.sentinel = fields.Take(fields.Number(kLengthDigits));
  if (!fields.good()) return tl::unexpected(std::string("look: the answer has no header"));
  sight.values.reserve(names);
  for (std::size_t i = 0; i < names; ++i) {
    const std::string_view raw = fields.Take(fields.Number(kLengthDigits));
    const Millis left = fields.Duration();
    if (!fields.good()) {
      return tl::unexpected(fmt::format("look: value {} of {} is cut off", i, names));
    }
    sight.values.push_back({std::string(raw), left});
  }
  if (!fields.Complete()) {
    return tl::unexpected(fmt::format("look: more than {} values", names));
  }
  return sight;
}

void FormatHeal(std::string_view sentinel, std::span<const HealWrite> writes, std::string& out) {
  AppendCallHead(ScriptNamed("heal"), 1 + writes.size(), 1 + 2 * writes.size(), out);
  for (const HealWrite& write : writes) AppendBulk(write.name, out);
  AppendBulk(sentinel, out);
  for (const HealWrite& write : writes) {
    AppendBulk(write.expected, out);
    const Millis left = std::clamp(write.left, Millis(1), kLongestField);
    AppendBulk(fmt::format("{:013}{}", left.count(), write.value), out);
  }
}

tl::expected<std::vector<bool>, std::string> ParseHeal(std::string_view payload,
                                                       std::size_t writes) {
  FixedFields fields(payload);
  fields.Duration();  // TIME
  const std::string_view letters = fields.rest();
  const bool good = fields.good() && letters.size() == writes &&
                    letters.find_first_not_of("WC") == std::string_view::npos;
  if (!good) return tl::unexpected(std::string("heal: the answer is not what the script says"));
  std::vector<bool> took_effect;
  for (const char letter : letters) took_effect.push_back(letter == 'W');
  return took_effect;
}

}  // namespace fencepost::locking
