#include "tests/model/simulator/positions.h"

namespace fencepost::simulator {

using consumer::PositionKey;
using consumer::PositionPart;
using consumer::PositionRow;

PositionTable::Rows PositionTable::Read(const std::vector<PositionPart>& parts) const {
  Rows found;
  for (const PositionPart& part : parts) {
    const auto row = rows_.find(part.key);
    found.emplace_back();
    if (row != rows_.end() && !row->second.empty()) found.back() = row->second.back().row;
  }
  return found;
}

void PositionTable::Store(const PositionKey& key, PositionRow row, Nanos at) {
  rows_[key].push_back({at, std::move(row)});
}

void PositionTable::FailOver(Nanos since) {
  for (auto& [key, versions] : rows_) {
    std::erase_if(versions, [since](const Version& version) { return version.at >= since; });
  }
}

PositionWrite::PositionWrite(std::string worker, const consumer::BatchRows& rows)
    : memory_(std::move(worker), terms_), changes_(memory_) {
  changes_.Fill(rows);
  for (std::size_t record = 0; record < rows.size(); ++record) {
    items_.push_back(rows.index(record));
  }
}

PositionWrite::DoneBefore PositionWrite::Lock(
    const PositionTable& table, const std::vector<LedgerItem>& items,
    const std::function<bool(const std::string&)>& is_letter) {
  before_ = table.Read(changes_.parts());
  changes_.OnLocked(before_);
  DoneBefore done(items.size());
  const auto done_before = [&](std::size_t record) {
    return changes_.DoneBefore(record, {.record_id = {}, .token = items[items_[record]].token});
  };
  for (std::size_t record = 0; record < items_.size(); ++record) {
    const LedgerItem& item = items[items_[record]];
    const bool replay = changes_.replay(record) && !item.letter && is_letter(item.id);
    if (!replay || !done_before(record)) continue;
    changes_.Reopen(record);
    reopened_.push_back(record);
  }
  for (std::size_t record = 0; record < items_.size(); ++record) {
    done[items_[record]] = done_before(record);
  }
  return done;
}

void PositionWrite::Store(PositionTable& table, Nanos at) const {
  for (auto& [key, row] : changes_.Changed("")) table.Store(key, std::move(row), at);
}

}  // namespace fencepost::simulator
