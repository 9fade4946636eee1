#include "consumer/outputs/ledger/refusal_search.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kSplit = 4;        // parts of one that is refused
constexpr std::size_t kMostBehind = 16;  // of what is left of it behind a suspect
constexpr std::size_t kMostJoined = 64;  // records, of what is left of several
constexpr std::size_t kMostParts = 128;  // in one go
constexpr std::size_t kFirstParts = 16;  // while nothing was taken, behind the first go
constexpr std::size_t kSuspectsOf = 2;   // more than one in so many are no guide

}  // namespace

RefusalSearch::RefusalSearch(const Records& records, std::vector<std::uint64_t> chains,
                             const Start& start)
    : chains_(std::move(chains)), untaken_(kMostParts), taken_(start.taken) {
  parts_.push_back({.records = records});
  if (start.suspects.empty()) {
    const bool dirty = start.refused || start.expected > 0;
    Insert(parts_.begin(), records, std::max(start.expected, dirty ? kSplit : 1), false);
  } else {
    Split(parts_.begin(), start.suspects);
  }
  parts_.pop_back();
}

// Rests that nothing is between any more: one part costs less than two.
void RefusalSearch::JoinRests() {
  for (auto part = parts_.begin(); part != parts_.end();) {
    const auto next = std::next(part);
    if (next != parts_.end() && part->rest && next->rest &&
        part->records.size() + next->records.size() <= kMostJoined) {
      next->records.insert(next->records.begin(), part->records.begin(), part->records.end());
      parts_.erase(part);
    }
    part = next;
  }
}

std::vector<RefusalSearch::Records> RefusalSearch::Next() {
  std::vector<Records> next;
  sent_.clear();
  JoinRests();
  const bool hopeless = !taken_ && refused_ >= kMostRefused;
  const std::size_t most = hopeless ? 0
                           : taken_ ? kMostParts
                                    : std::exchange(untaken_, kFirstParts);
  std::set<std::uint64_t> busy;  // of parts that come before
  for (auto part = parts_.begin(); part != parts_.end() && next.size() < most; ++part) {
    Records now, later;
    for (const std::size_t record : part->records) {
      const std::uint64_t chain = chains_[record];
      if (held_.contains(chain)) {
        left_.push_back(record);
      } else {
        (busy.contains(chain) ? later : now).push_back(record);
      }
    }
    for (const std::size_t record : part->records) {
      if (chains_[record] != 0) busy.insert(chains_[record]);
    }
    if (!now.empty()) {
      sent_.push_back(parts_.insert(part, {.records = now, .rest = part->rest}));
      next.push_back(std::move(now));
    }
    part->records = std::move(later);
  }
  std::erase_if(parts_, [](const Part& part) { return part.records.empty(); });
  if (!next.empty()) return next;
  for (const Part& part : parts_) std::ranges::copy(part.records, std::back_inserter(left_));
  parts_.clear();
  return next;
}

void RefusalSearch::OnTaken(std::size_t place) {
  taken_ = true;
  const auto part = sent_.at(place);
  if (part->records.size() == 1 && !part->rest) {  // the guess was wrong: it may be beside it
    if (part != parts_.begin()) std::prev(part)->rest = false;
    if (std::next(part) != parts_.end()) std::next(part)->rest = false;
  }
  parts_.erase(part);
}

void RefusalSearch::OnRefused(std::size_t place, const Records& suspects) {
  const auto part = sent_.at(place);
  if (part->records.size() == 1) {
    ++refused_;
    const std::uint64_t chain = chains_[part->records.front()];
    if (chain != 0 && chain != kInOrder) held_.insert(chain);
  } else {
    Split(part, suspects);
  }
  parts_.erase(part);
}

// Into what is written before the first suspect, and was mostly taken; each suspect alone; and what
// is behind it, in so many parts as may have one more each. A chain keeps its order.
void RefusalSearch::Split(Parts::iterator at, const Records& suspects) {
  std::set<std::size_t> suspected(suspects.begin(), suspects.end());
  if (suspected.size() * kSuspectsOf > at->records.size()) suspected.clear();
  std::map<std::size_t, Records> runs;
  std::map<std::uint64_t, std::size_t> chains;  // the run of its last record
  for (const std::size_t record : at->records) {
    const auto next = suspected.lower_bound(record);
    auto run = 2 * static_cast<std::size_t>(std::distance(suspected.begin(), next));
    if (next != suspected.end() && *next == record) ++run;
    std::size_t& last = chains[chains_[record]];
    if (chains_[record] != 0) run = last = std::max(last, run);
    runs[run].push_back(record);
  }
  if (runs.size() == 1) return Insert(at, at->records, kSplit, false);
  const std::size_t fine = runs[0].size() + 1;
  // A suspect may be among what is behind it, for its chain.
  const auto odd = [](const auto& run) { return run.first % 2 == 1; };
  const bool apart = std::ranges::count_if(runs, odd) == std::ssize(suspected);
  for (const auto& [run, records] : runs) {
    const std::size_t most = run == 2 * suspected.size() ? kMostBehind : 1;
    const bool rest = apart && run % 2 == 0;
    Insert(at, records, std::clamp<std::size_t>(records.size() / fine, 1, most), rest);
  }
}

// What keeps its order as a whole is not sent in one go: it costs one a part.
void RefusalSearch::Insert(Parts::iterator before, const Records& records, std::size_t parts,
                           bool rest) {
  const std::size_t size = records.size();
  if (size > 0 && chains_[records.front()] == kInOrder) parts = std::min(parts, kSplit);
  for (std::size_t i = 0; i < parts; ++i) {
    const auto from = records.begin() + static_cast<std::ptrdiff_t>(size * i / parts);
    const auto to = records.begin() + static_cast<std::ptrdiff_t>(size * (i + 1) / parts);
    if (from != to) parts_.insert(before, {.records = Records(from, to), .rest = rest});
  }
}

}  // namespace fencepost::consumer
