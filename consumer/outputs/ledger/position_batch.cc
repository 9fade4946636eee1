#include "consumer/outputs/ledger/position_batch.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

constexpr const char* kNoPosition =
    "its id, from the header fencepost-record-id, is no position (CLUSTER/topic/partition/offset), "
    "and with record_id: position the ledger holds nothing else";

bool IsOf(const PositionId& id, const PositionKey& key) {
  return id.partition == key.where.partition && id.topic == key.where.topic &&
         id.cluster == key.cluster;
}

// The part of this id, a new one where there is none yet. Neighbours are mostly of one partition.
std::size_t PartOf(const PositionId& id, std::vector<PositionPart>& parts, std::size_t last) {
  if (last < parts.size() && IsOf(id, parts[last].key)) return last;
  const auto known =
      std::ranges::find_if(parts, [&](const PositionPart& part) { return IsOf(id, part.key); });
  const auto at = static_cast<std::size_t>(known - parts.begin());
  if (known == parts.end()) parts.push_back({.key = PositionKey::Of(id)});
  return at;
}

// Sorts the parts; where each of them went.
std::vector<std::size_t> Sort(std::vector<PositionPart>& parts) {
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) -> const PositionKey& { return parts[i].key; });
  std::vector<PositionPart> sorted;
  std::vector<std::size_t> went(parts.size());
  for (const std::size_t i : order) {
    went[i] = sorted.size();
    sorted.push_back(std::move(parts[i]));
  }
  parts = std::move(sorted);
  return went;
}

}  // namespace

std::string PositionPrefix(const PositionKey& key) {
  std::string prefix = FormatPositionId({key.cluster, key.where.topic, key.where.partition, 0});
  prefix.pop_back();
  return prefix;
}

PositionLookup ByPartition(const std::vector<std::string>& ids) {
  PositionLookup lookup;
  std::size_t last = 0;
  for (const std::string& text : ids) {
    const auto id = ParsePositionId(text);
    auto& place = lookup.places.emplace_back();
    if (!id) continue;
    last = PartOf(*id, lookup.parts, last);
    lookup.parts[last].ranges.Add(id->offset, id->offset + 1);
    place = {last, id->offset};
  }
  const std::vector<std::size_t> went = Sort(lookup.parts);
  for (auto& place : lookup.places) {
    if (place) place->part = went[place->part];
  }
  return lookup;
}

PositionPart PartOf(const PositionId& first, Offset last) {
  PositionPart part{.key = PositionKey::Of(first)};
  const Offset end = last == std::numeric_limits<Offset>::max() ? last : last + 1;
  if (first.offset < end) part.ranges.Add(first.offset, end);
  return part;
}

bool PositionBatch::AllArePositions(const std::vector<WriteItem>& items,
                                    std::vector<WriteOutcome>& outcomes) {
  const auto is_position = [](const WriteItem& item) {
    return item.in_place || item.dead_letter != nullptr ||
           ParsePositionId(item.record_id).has_value();
  };
  if (std::ranges::all_of(items, is_position)) return true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    outcomes[i].result = WriteResult::kNotWritten;
    if (is_position(items[i])) continue;
    outcomes[i].result = WriteResult::kBadRecord;
    outcomes[i].detail = outcomes[i].shown = kNoPosition;
  }
  return false;
}

void PositionBatch::Fill(const BatchRows& rows) {
  parts_.clear();
  places_.clear();
  replays_.clear();
  read_in_.clear();
  items_.clear();
  std::size_t last = 0;
  for (std::size_t record = 0; record < rows.size(); ++record) {
    const WriteItem& item = rows.item(record);
    const Record& read = *item.record;
    const PositionId place{item.cluster, item.where->topic, item.where->partition, read.offset};
    auto id = item.in_place ? place : ParsePositionId(item.record_id);
    if (!id && item.dead_letter != nullptr) id = place;
    FENCEPOST_CHECK(id.has_value(), "an id that is no position");
    last = PartOf(*id, parts_, last);
    places_.push_back({last, id->offset});
    const bool in_place = place == *id;
    replays_.push_back(!in_place);
    if (!in_place) {
      parts_[last].ranges.Add(id->offset, id->offset + 1);
      parts_[last].token = std::max(parts_[last].token, item.token);
      last = PartOf(place, parts_, last);
    }
    read_in_.push_back(last);
    items_.push_back(rows.index(record));
    PositionPart& part = parts_[last];
    part.ranges.Add(read.offset - read.gap, read.offset + 1);
    part.token = std::max(part.token, item.token);
    if (!in_place) continue;
    part.epoch = std::min(part.epoch, read.epoch);
    part.start = item.start;
    const LogSample known{.offset = read.offset,
                          .timestamp = read.timestamp ? read.timestamp->count() : -1,
                          .crc = {},
                          .content = item.crc};
    if (!part.oldest || known.offset < part.oldest->offset) part.oldest = known;
    if (!part.newest || known.offset > part.newest->offset) part.newest = known;
  }
  const std::vector<std::size_t> went = Sort(parts_);
  for (PositionLookup::Place& place : places_) place.part = went[place.part];
  for (std::size_t& part : read_in_) part = went[part];
}

std::vector<std::size_t> PositionBatch::ItemsOf(const std::vector<std::size_t>& parts) const {
  std::vector<std::size_t> items;
  const auto among = [&](std::size_t part) {
    return std::ranges::find(parts, part) != parts.end();
  };
  for (std::size_t record = 0; record < places_.size(); ++record) {
    if (among(places_[record].part) || among(read_in_[record])) items.push_back(items_[record]);
  }
  return items;
}

}  // namespace fencepost::consumer
