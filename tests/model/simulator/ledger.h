// The output: a table of effects and its ledger, where a transaction happens at one moment or not
// at all. What it answers stands in consumer/outputs/output.h. One that was sent and has not
// happened yet keeps others from its ids, as its rows' locks would; one whose COMMIT is on its way
// holds them. After a failover, or when a
// backup is restored, it is as it was at an earlier moment, and all connections to it are broken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/outputs/output.h"
#include "consumer/record/position_id.h"
#include "tests/model/simulator/effects.h"
#include "tests/model/simulator/plan.h"
#include "tests/model/simulator/positions.h"

namespace fencepost::simulator {

class Ledger {
 public:
  struct Row {
    locking::Token token;
    std::string source;
    locking::ContentCrc crc = 0;
    By by;
    bool letter = false;
  };
  struct LostRow {
    std::string id;
    Row row;
  };

  using Outcomes = tl::expected<std::vector<consumer::WriteOutcome>, consumer::WriteFailure>;

  void Send(const std::vector<LedgerItem>& items) {
    for (const LedgerItem& item : items) sent_.insert(item.id);
  }
  void Forget(const std::vector<LedgerItem>& items) {
    for (const LedgerItem& item : items) sent_.erase(sent_.find(item.id));
  }
  [[nodiscard]] bool AnySent() const { return !sent_.empty() || !locked_.empty(); }
  [[nodiscard]] bool Sent(const std::string& id) const { return sent_.contains(id); }
  // Ids; by position, what those of a partition begin with.
  void Lock(const std::set<std::string>& names) { locked_.insert(names.begin(), names.end()); }
  void Unlock(const std::set<std::string>& names) {
    for (const std::string& name : names) locked_.erase(name);
  }
  [[nodiscard]] bool Locked(const std::string& id) const {
    return locked_.contains(id) || locked_.contains(id.substr(0, id.rfind('/') + 1));
  }
  // A record of a transaction that is committed.
  // False: the table has a newer row.
  bool Put(const LedgerItem& item, const By& by) {
    auto [row, is_new] = rows_.try_emplace(item.id);
    if (!is_new) replaced_.push_back({item.id, std::move(row->second), by.at});
    row->second = RowOf(item, by);
    if (!item.makes_rows) return true;
    if (HasNewer(item)) return false;
    table_[item.key].push_back({by.at, item.fence});
    return true;
  }
  [[nodiscard]] bool HasNewer(const LedgerItem& item) const {
    const auto row = table_.find(item.key);
    return row != table_.end() && !row->second.empty() && row->second.back().second > item.fence;
  }
  // One transaction that was sent; by position, with what it does to the rows of its partitions.
  Outcomes Write(const std::vector<LedgerItem>& items, Mood mood, const By& by) {
    if (const auto failure = Fails(items, mood)) return tl::unexpected(*failure);
    return Take(items, by);
  }
  Outcomes Write(const std::vector<LedgerItem>& items, Mood mood, const By& by,
                 PositionWrite& positions) {
    if (const auto failure = Fails(items, mood)) return tl::unexpected(*failure);
    return Take(items, by, positions);
  }
  [[nodiscard]] const Row* Find(const std::string& id) const {
    const auto found = rows_.find(id);
    return found == rows_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::vector<std::optional<consumer::LedgerEntry>> Lookup(
      const std::vector<std::string>& ids) const {
    std::vector<std::optional<consumer::LedgerEntry>> entries;
    for (const std::string& id : ids) {
      const Row* row = Find(id);
      entries.emplace_back();
      if (row == nullptr) continue;
      entries.back() = consumer::LedgerEntry{.token = row->token,
                                             .crc = row->crc,
                                             .worker = {},
                                             .source = row->source,
                                             .completed_at = {}};
    }
    return entries;
  }
  [[nodiscard]] const std::map<std::string, Row>& rows() const { return rows_; }
  // By position: what a worker sees of it.
  [[nodiscard]] const PositionTable& positions() const { return positions_; }
  void Store(const consumer::PositionKey& key, const consumer::PositionRow& row, Nanos now) {
    positions_.Store(key, row, now);
  }
  void Erase(const std::string& id) { rows_.erase(id); }
  // Of these offsets of a partition.
  void Erase(const consumer::PositionKey& key, const consumer::PositionRange& range) {
    std::erase_if(rows_, [&](const auto& entry) {
      const auto id = consumer::ParsePositionId(entry.first);
      return consumer::PositionKey::Of(*id) == key && id->offset >= range.begin &&
             id->offset < range.end;
    });
  }

  // --- connections -----------------------------------------------------------------------------
  // A connection belongs to one session.
  [[nodiscard]] std::uint64_t session() const { return session_; }
  [[nodiscard]] bool Away(Nanos now) const { return now < away_until_; }
  // What was committed at `since` or later is gone; it answers again from `back` on.
  std::vector<LostRow> FailOver(Nanos since, Nanos back) {
    ++session_;
    away_until_ = back;
    positions_.FailOver(since);
    for (auto& [key, changes] : table_) {
      std::erase_if(changes, [since](const auto& change) { return change.first >= since; });
    }
    auto lost = Drop([&](const Row& row) { return row.by.at >= since; });
    for (const Replaced& one : replaced_) {
      if (one.at >= since && one.row.by.at < since) rows_.try_emplace(one.id, one.row);
    }
    std::erase_if(replaced_, [since](const Replaced& one) { return one.at >= since; });
    return lost;
  }

 private:
  struct Replaced {
    std::string id;
    Row row;
    Nanos at;
  };

  template <typename Goes>
  std::vector<LostRow> Drop(Goes goes) {
    std::vector<LostRow> gone;
    for (auto at = rows_.begin(); at != rows_.end();) {
      if (!goes(at->second)) {
        ++at;
        continue;
      }
      gone.push_back({at->first, std::move(at->second)});
      at = rows_.erase(at);
    }
    return gone;
  }
  std::optional<consumer::WriteFailure> Fails(const std::vector<LedgerItem>& items, Mood mood) {
    const bool refused = std::ranges::any_of(items, [&](const LedgerItem& item) {
      const Row* const row = Find(item.id);
      const bool fresh = row == nullptr || row->token == locking::Token();
      return item.makes_rows && fresh && (item.refused > 0 || mood == Mood::kRefusesAll);
    });
    const bool waits = std::ranges::any_of(
        items, [&](const LedgerItem& item) { return sent_.count(item.id) > 1; });
    Forget(items);
    const bool locked =
        std::ranges::any_of(items, [&](const LedgerItem& item) { return Locked(item.id); });
    if (mood == Mood::kFull) return consumer::WriteFailure::kUnavailable;
    if (mood == Mood::kSlow && items.size() > 2) return consumer::WriteFailure::kTooSlow;
    if (mood == Mood::kLocked || locked || (refused && waits))
      return consumer::WriteFailure::kLocked;
    if (refused) return consumer::WriteFailure::kRefused;
    return std::nullopt;
  }
  std::vector<consumer::WriteOutcome> Take(const std::vector<LedgerItem>& items, const By& by) {
    std::vector<consumer::WriteOutcome> outcomes;
    std::set<std::uint64_t> held;
    for (const LedgerItem& item : items) {
      if (held.contains(item.chain)) {
        outcomes.push_back({.result = consumer::WriteResult::kNotWritten});
        continue;
      }
      const auto found = rows_.find(item.id);
      auto outcome =
          found == rows_.end() ? consumer::WriteOutcome() : WhatStands(found->second, item);
      if (found == rows_.end() || outcome.result == consumer::WriteResult::kNotWritten) {
        outcome = Fresh(item);
        outcome.lost_to_newer = !Put(item, by);
      }
      outcomes.push_back(std::move(outcome));
      const bool conflict = outcomes.back().result == consumer::WriteResult::kIdConflict;
      if (conflict && item.chain != 0) held.insert(item.chain);
    }
    return outcomes;
  }
  std::vector<consumer::WriteOutcome> Take(const std::vector<LedgerItem>& items, const By& by,
                                           PositionWrite& positions) {
    const auto done = positions.Lock(positions_, items, [this](const std::string& id) {
      const Row* const row = Find(id);
      return row != nullptr && row->letter;
    });
    positions.Store(positions_, by.at);
    std::vector<consumer::WriteOutcome> outcomes;
    for (std::size_t i = 0; i < items.size(); ++i) {
      outcomes.push_back(done[i].value_or(Fresh(items[i])));
      if (!done[i]) outcomes.back().lost_to_newer = !Put(items[i], by);
    }
    return outcomes;
  }
  static consumer::WriteOutcome WhatStands(const Row& row, const LedgerItem& item) {
    return consumer::DuplicateOrConflict(
        {.token = row.token, .crc = row.crc, .source = row.source},
        {.record_id = item.id, .token = item.token, .crc = item.crc}, item.source, item.makes_rows);
  }
  static Row RowOf(const LedgerItem& item, const By& by) {
    return {item.makes_rows ? item.token : locking::Token(), item.source, item.crc, by,
            item.letter};
  }
  static consumer::WriteOutcome Fresh(const LedgerItem& item) {
    if (item.makes_rows) return {};
    return {.result = consumer::WriteResult::kNoOutput, .took_rows = false};
  }

  std::map<std::string, Row> rows_;  // by position, of effects, too
  std::vector<Replaced> replaced_;   // rows that others came in the place of
  // By key, the fences of what was put there, and when.
  std::map<std::string, std::vector<std::pair<Nanos, std::int64_t>>> table_;
  PositionTable positions_;
  std::multiset<std::string> sent_;  // ids in transactions that have not happened
  std::set<std::string> locked_;
  std::uint64_t session_ = 1;
  Nanos away_until_{0};
};

}  // namespace fencepost::simulator
