#include "locking/redis/tools/look_wire.h"

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

}  // namespace fencepost::locking
