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

PositionWrite::DoneBefore PositionWrite::Lock(const PositionTable& table,
                                              const std::vector<locking::Token>& tokens) {
  before_ = table.Read(changes_.parts());
  changes_.OnLocked(before_);
  DoneBefore done(tokens.size());
  for (std::size_t record = 0; record < items_.size(); ++record) {
    const std::size_t item = items_[record];
    done[item] = changes_.DoneBefore(record, {.record_id = {}, .token = tokens[item]});
  }
  return done;
}

void PositionWrite::Store(PositionTable& table, Nanos at) const {
  for (auto& [key, row] : changes_.Changed("")) table.Store(key, std::move(row), at);
}

}  // namespace fencepost::simulator
