#include "locking/core/store/sentinel.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/base/fixed_fields.h"

namespace fencepost::locking {
namespace {

constexpr std::int64_t kMaxQuarantineUntil = 9'999'999'999'999;
constexpr std::int64_t kMaxTtlMs = 99'999'999;

bool IsLowerHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

bool IsRunId(std::string_view text) {
  return text.size() == kRunIdSize &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~' && c != '|'; });
}

std::string Sentinel::Encode() const {
  const std::int64_t until = quarantine_until.time_since_epoch().count();
  FENCEPOST_CHECK(store_id.size() == kStoreIdSize, store_id);
  FENCEPOST_CHECK(run_id.size() == kRunIdSize, run_id);
  FENCEPOST_CHECK(index >= 0 && index <= 9 && nodes >= 0 && nodes <= 9, store_id);
  FENCEPOST_CHECK(epoch <= kMaxEpoch && until >= 0 && until <= kMaxQuarantineUntil, store_id);
  FENCEPOST_CHECK(max_ttl.count() >= 0 && max_ttl.count() <= kMaxTtlMs, store_id);
  return fmt::format("{}|{}|{}|{}|{:08}|{}|{:013}|{:08}", complete ? 'C' : 'F', store_id, index,
                     nodes, epoch, run_id, until, max_ttl.count());
}

std::optional<Sentinel> Sentinel::Decode(std::string_view text) {
  FixedFields in(text);
  Sentinel out;
  out.complete = in.Letter() == 'C';
  const auto next = [&in](std::size_t size) { return in.Take(1), in.Take(size); };
  const auto number = [&in](std::size_t digits) { return in.Take(1), in.Number(digits); };
  out.store_id = next(kStoreIdSize);
  out.index = static_cast<int>(number(1));
  out.nodes = static_cast<int>(number(1));
  out.epoch = static_cast<std::uint32_t>(number(8));
  out.run_id = next(kRunIdSize);
  out.quarantine_until = WallTime(Millis(static_cast<std::int64_t>(number(13))));
  out.max_ttl = Millis(static_cast<std::int64_t>(number(8)));
  const bool good = in.Complete() && IsLowerHex(out.store_id) && IsRunId(out.run_id);
  return good && out.Encode() == text ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace fencepost::locking
