// The output: a table of effects and its ledger, where a transaction happens at one moment or not
// at all. What it answers stands in consumer/outputs/output.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "consumer/outputs/output.h"

namespace fencepost::simulator {

struct LedgerItem {
  std::string id;
  std::string source;
  locking::Token token;
  locking::ContentCrc crc = 0;
  bool refused = false;  // the table does not take such a row
};

class Ledger {
 public:
  struct Row {
    locking::Token token;
    std::string source;
    locking::ContentCrc crc = 0;
    int effects = 0;
  };

  // One transaction.
  std::vector<consumer::WriteOutcome> Write(const std::vector<LedgerItem>& items) {
    std::vector<consumer::WriteOutcome> outcomes;
    for (const LedgerItem& item : items) {
      if (item.refused && Find(item.id) == nullptr) {
        outcomes.push_back({consumer::WriteResult::kBadRecord, "refused", true});
        continue;
      }
      const auto [place, inserted] = rows_.try_emplace(item.id);
      Row& row = place->second;
      if (inserted) row = {item.token, item.source, item.crc, 0};
      if (inserted) ++row.effects;
      outcomes.push_back({inserted ? consumer::WriteResult::kCommitted : Classify(row, item), {}});
    }
    return outcomes;
  }
  [[nodiscard]] const Row* Find(const std::string& id) const {
    const auto found = rows_.find(id);
    return found == rows_.end() ? nullptr : &found->second;
  }

 private:
  static consumer::WriteResult Classify(const Row& stands, const LedgerItem& item) {
    using consumer::WriteResult;
    if (stands.crc != item.crc) return WriteResult::kIdConflict;
    if (stands.source == item.source) return WriteResult::kOwnEarlier;
    if (stands.token > item.token) return WriteResult::kFenced;
    return WriteResult::kDuplicate;
  }

  std::map<std::string, Row> rows_;
};

}  // namespace fencepost::simulator
