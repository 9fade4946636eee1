#include "locking/core/store/sentinel.h"

#include <algorithm>

#include <fmt/format.h>

#include "locking/base/check.h"

namespace fencepost::locking {
namespace {

constexpr std::int64_t kMaxQuarantineUntil = 9'999'999'999'999;
constexpr std::int64_t kMaxTtl = 99'999'999;

// Takes a sentinel apart from the left; `ok` turns false at the first thing that does not fit.
struct Reader {
  std::string_view rest;
  bool ok = true;

  std::string_view Take(std::size_t size) {
    ok = ok && rest.size() >= size;
    if (!ok) return {};
    const std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }
  void Bar() { ok = ok && Take(1) == "|"; }
  std::int64_t Digits(std::size_t size) {
    std::int64_t value = 0;
    for (const char c : Take(size)) {
      ok = ok && c >= '0' && c <= '9';
      value = value * 10 + (c - '0');
    }
    return value;
  }
  std::string Hex(std::size_t size) {
    const std::string_view text = Take(size);
    ok = ok && std::all_of(text.begin(), text.end(),
                           [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    return std::string(text);
  }
  std::string Word(std::size_t size) {
    const std::string_view text = Take(size);
    ok = ok && std::all_of(text.begin(), text.end(),
                           [](char c) { return c > ' ' && c <= '~' && c != '|'; });
    return std::string(text);
  }
};

}  // namespace

std::string Sentinel::Encode() const {
  const std::int64_t until = quarantine_until.time_since_epoch().count();
  FENCEPOST_CHECK(store_id.size() == kStoreIdSize, store_id);
  FENCEPOST_CHECK(run_id.size() == kRunIdSize, run_id);
  FENCEPOST_CHECK(index >= 0 && index <= 9 && nodes >= 0 && nodes <= 9, store_id);
  FENCEPOST_CHECK(epoch <= kMaxEpoch && until >= 0 && until <= kMaxQuarantineUntil, store_id);
  FENCEPOST_CHECK(max_ttl.count() >= 0 && max_ttl.count() <= kMaxTtl, store_id);
  return fmt::format("{}|{}|{}|{}|{:08}|{}|{:013}|{:08}", complete ? 'C' : 'F', store_id, index,
                     nodes, epoch, run_id, until, max_ttl.count());
}

std::optional<Sentinel> Sentinel::Decode(std::string_view text) {
  Reader in{text};
  Sentinel out;
  const std::string_view state = in.Take(1);
  in.ok = in.ok && (state == "C" || state == "F");
  out.complete = state == "C";
  in.Bar();
  out.store_id = in.Hex(kStoreIdSize);
  in.Bar();
  out.index = static_cast<int>(in.Digits(1));
  in.Bar();
  out.nodes = static_cast<int>(in.Digits(1));
  in.Bar();
  out.epoch = static_cast<std::uint32_t>(in.Digits(8));
  in.Bar();
  out.run_id = in.Word(kRunIdSize);
  in.Bar();
  out.quarantine_until = WallTime(Millis(in.Digits(13)));
  in.Bar();
  out.max_ttl = Millis(in.Digits(8));
  if (!in.ok || !in.rest.empty()) return std::nullopt;
  return out;
}

}  // namespace fencepost::locking
