#include "consumer/outputs/ledger/refusal_search.h"

#include <algorithm>
#include <utility>

#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kSplit = 4;        // parts of one that is refused
constexpr std::size_t kAround = 2;       // of what is left of it beside a suspect
constexpr std::size_t kMostParts = 64;   // in one go
constexpr std::size_t kFirstParts = 16;  // while nothing was taken
constexpr std::size_t kSuspectsOf = 2;   // more than one in so many are no guide

}  // namespace

RefusalSearch::RefusalSearch(Records records, std::vector<std::uint64_t> chains, bool as_one)
    : chains_(std::move(chains)) {
  Insert(parts_.end(), records, as_one ? 1 : kSplit);
}

std::vector<RefusalSearch::Records> RefusalSearch::Next() {
  std::vector<Records> next;
  sent_.clear();
  const bool hopeless = !taken_ && refused_ >= kMostRefused;
  const std::size_t most = hopeless ? 0 : taken_ ? kMostParts : kFirstParts;
  std::set<std::uint64_t> busy;  // of parts that come before
  for (auto part = parts_.begin(); part != parts_.end() && next.size() < most; ++part) {
    Records now, later;
    for (const std::size_t record : *part) {
      const std::uint64_t chain = chains_[record];
      if (held_.contains(chain)) {
        left_.push_back(record);
      } else {
        (busy.contains(chain) ? later : now).push_back(record);
      }
    }
    for (const std::size_t record : *part) {
      if (chains_[record] != 0) busy.insert(chains_[record]);
    }
    if (!now.empty()) {
      sent_.push_back(parts_.insert(part, now));
      next.push_back(std::move(now));
    }
    *part = std::move(later);
  }
  std::erase_if(parts_, [](const Records& part) { return part.empty(); });
  if (!next.empty()) return next;
  for (const Records& part : parts_) left_.insert(left_.end(), part.begin(), part.end());
  parts_.clear();
  return next;
}

void RefusalSearch::OnTaken(std::size_t place) {
  taken_ = true;
  parts_.erase(sent_.at(place));
}

void RefusalSearch::OnRefused(std::size_t place, const Records& suspects) {
  const auto part = sent_.at(place);
  if (part->size() == 1) {
    ++refused_;
    const std::uint64_t chain = chains_[part->front()];
    if (chain != 0 && chain != kInOrder) held_.insert(chain);
  } else {
    Split(part, suspects.size() * kSuspectsOf > part->size() ? Records() : suspects);
  }
  parts_.erase(part);
}

// First what has no chain with a suspect; then the others in their order, each suspect alone.
void RefusalSearch::Split(Parts::iterator at, const Records& suspects) {
  if (suspects.empty()) return Insert(at, *at, kSplit);
  const std::set<std::size_t> suspected(suspects.begin(), suspects.end());
  std::set<std::uint64_t> chains;
  for (const std::size_t record : suspects) chains.insert(chains_[record]);
  chains.erase(0);
  Records apart, beside;
  for (const std::size_t record : *at) {
    const bool with = suspected.contains(record) || chains.contains(chains_[record]);
    (with ? beside : apart).push_back(record);
  }
  Insert(at, apart, kAround);
  Records run;
  for (const std::size_t record : beside) {
    if (!suspected.contains(record)) {
      run.push_back(record);
      continue;
    }
    Insert(at, std::exchange(run, {}), 1);
    Insert(at, {record}, 1);
  }
  Insert(at, run, 1);
}

void RefusalSearch::Insert(Parts::iterator before, const Records& records, std::size_t parts) {
  const std::size_t size = records.size();
  for (std::size_t i = 0; i < parts; ++i) {
    const auto from = records.begin() + static_cast<std::ptrdiff_t>(size * i / parts);
    const auto to = records.begin() + static_cast<std::ptrdiff_t>(size * (i + 1) / parts);
    if (from != to) parts_.insert(before, Records(from, to));
  }
}

}  // namespace fencepost::consumer
