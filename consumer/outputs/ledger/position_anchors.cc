#include "consumer/outputs/ledger/position_memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace fencepost::consumer {
namespace {

int Distance(const LogSample& newest, const LogSample& other) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(newest.offset - other.offset)) +
                          3) /
         4;
}

}  // namespace

// Of those at about the same distance the oldest stays: it moves on to the next distance, where
// there is none yet. The added one stays until the next: what comes late, of another log, is
// evidence that whoever writes next has to see.
void PositionAnchors::Add(const LogSample& record) {
  const auto at =
      std::ranges::find_if(all_, [&](const LogSample& one) { return one.offset <= record.offset; });
  if (at != all_.end() && at->offset == record.offset) return;  // the earlier one is the evidence
  all_.insert(at, record);
  std::vector<LogSample> kept;
  for (const LogSample& one : all_) {
    const bool same = !kept.empty() && kept.back() != record &&
                      Distance(all_.front(), kept.back()) == Distance(all_.front(), one);
    if (same) {
      kept.back() = one;
    } else {
      kept.push_back(one);
    }
  }
  if (kept.size() > kMost) kept.resize(kMost);
  all_ = std::move(kept);
}

void PositionAnchors::Add(const std::optional<LogSample>& oldest,
                          const std::optional<LogSample>& newest) {
  if (oldest) Add(*oldest);
  if (newest) Add(*newest);
}

bool PositionAnchors::Has(const LogSample& record) const {
  return std::ranges::find(all_, record) != all_.end();
}

std::string PositionAnchors::Text() const {
  std::string text;
  for (const LogSample& one : all_) text += (text.empty() ? "" : " ") + AnchorText(one);
  return text;
}

PositionAnchors PositionAnchors::Parse(std::string_view text) {
  PositionAnchors anchors;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const auto one = ParseAnchor(text.substr(0, blank));
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (one && (anchors.all_.empty() || anchors.all_.back().offset > one->offset)) {
      anchors.all_.push_back(*one);
    }
  }
  return anchors;
}

}  // namespace fencepost::consumer
