#include "tests/fault/mutual_exclusion/judge.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace fencepost::torture {
namespace {

constexpr double kMs = 1e6;

std::string Show(const Held& lease) {
  return fmt::format("name {} token {} [{:.3f} ms, {:.3f} ms]", lease.name, lease.token,
                     static_cast<double>(lease.from_ns) / kMs,
                     static_cast<double>(lease.to_ns) / kMs);
}

}  // namespace

void Judge::Hear(const std::vector<Entry>& journal) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, Held> held;
  for (const Entry& entry : journal) {
    const auto key = std::pair(entry.name, entry.token);
    switch (entry.kind) {
      case Entry::Kind::kHeld: {
        const auto [at, is_new] = held.try_emplace(
            key, Held{entry.name, entry.token, entry.at_ns, entry.until_ns, entry.asked_ns});
        if (is_new) ++tally_.leases;
        at->second.to_ns = std::max(at->second.to_ns, entry.until_ns);
        break;
      }
      case Entry::Kind::kLost:
        ++tally_.losses;
        [[fallthrough]];
      case Entry::Kind::kReleasing:
        if (const auto at = held.find(key); at != held.end()) {
          at->second.to_ns = std::min(at->second.to_ns, entry.at_ns);
        }
        break;
      case Entry::Kind::kContended:
        ++tally_.contended;
        break;
      case Entry::Kind::kNoQuorum:
        ++tally_.no_quorum;
        break;
      case Entry::Kind::kOtherError:
        ++tally_.other_errors;
        break;
      case Entry::Kind::kRead:
      case Entry::Kind::kWrite:
      case Entry::Kind::kAdmitted:
      case Entry::Kind::kRefused:
        break;
    }
  }
  for (const auto& [key, lease] : held) leases_.push_back(lease);
}

std::vector<Held> Judge::Sorted() const {
  std::vector<Held> sorted = leases_;
  std::sort(sorted.begin(), sorted.end(), [](const Held& a, const Held& b) {
    return std::tie(a.name, a.from_ns) < std::tie(b.name, b.from_ns);
  });
  return sorted;
}

std::vector<std::string> Judge::Overlaps() const {
  std::vector<std::string> found;
  const std::vector<Held> sorted = Sorted();
  const Held* longest = nullptr;  // of those before, the one that stands the longest
  for (const Held& lease : sorted) {
    if (longest != nullptr && longest->name == lease.name && lease.from_ns < longest->to_ns) {
      found.push_back(Show(*longest) + " and " + Show(lease));
    }
    if (longest == nullptr || longest->name != lease.name || lease.to_ns > longest->to_ns) {
      longest = &lease;
    }
  }
  return found;
}

std::vector<std::string> Judge::Disorders() const {
  std::vector<std::string> found;
  const std::vector<Held> sorted = Sorted();
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].name == sorted[i - 1].name && sorted[i].token <= sorted[i - 1].token) {
      found.push_back(Show(sorted[i - 1]) + " before " + Show(sorted[i]));
    }
  }
  return found;
}

std::string WrongWith(const Counter& fenced) {
  const bool in_order = std::is_sorted(fenced.order.begin(), fenced.order.end());
  if (fenced.value == fenced.accepted && fenced.lost == 0 && fenced.disordered == 0 && in_order) {
    return "";
  }
  return fmt::format("value {} after {} accepted increments, {} lost, {} out of order",
                     fenced.value, fenced.accepted, fenced.lost, fenced.disordered);
}

}  // namespace fencepost::torture
