#include "consumer/outputs/ledger/position_anchors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

template <typename Int>
bool TakeNumber(std::string_view& text, Int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty() && text.front() == ':') text.remove_prefix(1);
  return true;
}

int Distance(const LogRecord& newest, const LogRecord& other) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(newest.offset - other.offset)) +
                          3) /
         4;
}

}  // namespace

// Of those at about the same distance the oldest stays: it moves on to the next distance, where
// there is none yet. The added one stays until the next: what comes late, of another log, is
// evidence that whoever writes next has to see.
void PositionAnchors::Add(const LogRecord& record) {
  const auto at =
      std::ranges::find_if(all_, [&](const LogRecord& one) { return one.offset <= record.offset; });
  if (at != all_.end() && at->offset == record.offset) return;  // the earlier one is the evidence
  all_.insert(at, record);
  std::vector<LogRecord> kept;
  for (const LogRecord& one : all_) {
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

void PositionAnchors::Add(const std::optional<LogRecord>& oldest,
                          const std::optional<LogRecord>& newest) {
  if (oldest) Add(*oldest);
  if (newest) Add(*newest);
}

bool PositionAnchors::Has(const LogRecord& record) const {
  return std::ranges::find(all_, record) != all_.end();
}

std::string PositionAnchors::Text() const {
  std::string text;
  for (const LogRecord& one : all_) {
    fmt::format_to(std::back_inserter(text), "{}{}:{}:{}", text.empty() ? "" : " ", one.offset,
                   one.timestamp, one.content);
  }
  return text;
}

PositionAnchors PositionAnchors::Parse(std::string_view text) {
  PositionAnchors anchors;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    std::string_view part = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    LogRecord one;
    const bool read = TakeNumber(part, one.offset) && TakeNumber(part, one.timestamp) &&
                      TakeNumber(part, one.content) && part.empty();
    if (read && (anchors.all_.empty() || anchors.all_.back().offset > one.offset)) {
      anchors.all_.push_back(one);
    }
  }
  return anchors;
}

std::optional<std::string> AnotherLog(const std::vector<LogRecord>& known, const LogState& log) {
  if (known.empty()) return std::nullopt;
  const Offset newest = std::ranges::max(known, {}, &LogRecord::offset).offset;
  if (log.end <= newest) {
    return fmt::format("it ends at offset {}, and the record at {} was done", log.end, newest);
  }
  for (const LogRecord& one : known) {
    const auto found = std::ranges::find(log.records, one.offset, &LogRecord::offset);
    if (found == log.records.end()) continue;
    const bool same =
        one.timestamp == found->timestamp && !locking::IsOtherContent(one.content, found->content);
    if (same) continue;
    return fmt::format("at offset {} there is another record than the one that was done",
                       one.offset);
  }
  return std::nullopt;
}

}  // namespace fencepost::consumer
