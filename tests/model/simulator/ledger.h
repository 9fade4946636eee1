// The output: a table of effects and its ledger, where a transaction happens at one moment or not
// at all. What it answers stands in consumer/outputs/output.h. One that was sent and has not
// happened yet keeps others from its ids, as its rows' locks would.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/output.h"

namespace fencepost::simulator {

struct LedgerItem {
  std::string id;
  std::string source;
  locking::Token token;
  locking::ContentCrc crc = 0;
  bool refused = false;  // the table does not take such a row
  std::uint64_t chain = 0;
};

class Ledger {
 public:
  struct Row {
    locking::Token token;
    std::string source;
    locking::ContentCrc crc = 0;
    int effects = 0;
  };

  // How the table is just now.
  enum class Mood : std::uint8_t { kUsual, kRefusesAll, kLocked, kSlow };
  using Outcomes = tl::expected<std::vector<consumer::WriteOutcome>, consumer::WriteFailure>;

  void Send(const std::vector<LedgerItem>& items) {
    for (const LedgerItem& item : items) sent_.insert(item.id);
  }
  void Forget(const std::vector<LedgerItem>& items) {
    for (const LedgerItem& item : items) sent_.erase(sent_.find(item.id));
  }
  // One transaction that was sent.
  Outcomes Write(const std::vector<LedgerItem>& items, Mood mood) {
    const bool refused = std::ranges::any_of(items, [&](const LedgerItem& item) {
      return Find(item.id) == nullptr && (item.refused || mood == Mood::kRefusesAll);
    });
    const bool waits = std::ranges::any_of(
        items, [&](const LedgerItem& item) { return sent_.count(item.id) > 1; });
    Forget(items);
    if (mood == Mood::kSlow && items.size() > 2) {
      return tl::unexpected(consumer::WriteFailure::kTooSlow);
    }
    if (mood == Mood::kLocked || (refused && waits)) {
      return tl::unexpected(consumer::WriteFailure::kLocked);
    }
    if (refused) return tl::unexpected(consumer::WriteFailure::kRefused);
    return Take(items);
  }
  [[nodiscard]] const Row* Find(const std::string& id) const {
    const auto found = rows_.find(id);
    return found == rows_.end() ? nullptr : &found->second;
  }

 private:
  std::vector<consumer::WriteOutcome> Take(const std::vector<LedgerItem>& items) {
    std::vector<consumer::WriteOutcome> outcomes;
    std::set<std::uint64_t> held;
    for (const LedgerItem& item : items) {
      if (held.contains(item.chain)) {
        outcomes.push_back({.result = consumer::WriteResult::kNotWritten});
        continue;
      }
      const auto [place, inserted] = rows_.try_emplace(item.id);
      Row& row = place->second;
      if (inserted) row = {item.token, item.source, item.crc, 0};
      if (inserted) ++row.effects;
      outcomes.push_back({inserted ? consumer::WriteResult::kCommitted : Classify(row, item), {}});
      const bool conflict = outcomes.back().result == consumer::WriteResult::kIdConflict;
      if (conflict && item.chain != 0) held.insert(item.chain);
    }
    return outcomes;
  }
  static consumer::WriteResult Classify(const Row& stands, const LedgerItem& item) {
    using consumer::WriteResult;
    if (stands.crc != item.crc) return WriteResult::kIdConflict;
    if (stands.source == item.source) return WriteResult::kOwnEarlier;
    if (stands.token > item.token) return WriteResult::kFenced;
    return WriteResult::kDuplicate;
  }

  std::map<std::string, Row> rows_;
  std::multiset<std::string> sent_;  // ids in transactions that have not happened
};

}  // namespace fencepost::simulator
