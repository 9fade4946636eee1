#include "consumer/cli/dlq/newer_changes.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "consumer/decode/registry/registry_decoder.h"
#include "consumer/record/dead_letter.h"
#include "consumer/worker/worker_parts.h"
#include "locking/base/types.h"

namespace fencepost::cli {

using consumer::Column;
using consumer::Millis;
using consumer::Record;
using consumer::Selector;
using consumer::TopicPartition;
using consumer::TopicRecord;

namespace {

// A letter may have any number of newer changes; of these so many are asked for.
constexpr std::size_t kMostChanges = 64;
constexpr Millis kLimit{30'000};
constexpr std::size_t kIdsAtOnce = 500;
constexpr std::string_view kInsist = "--over-newer replays it all the same";

// The effect by which a record changes or deletes a row that another may have written. Of several,
// and of rows of elements, no key: the record's own decides.
std::optional<consumer::Effect> ChangingEffect(const consumer::OutputOptions& output) {
  return std::visit(
      [](const auto& kind) -> std::optional<consumer::Effect> {
        std::optional<consumer::Effect> changing;
        if constexpr (requires { kind.effects; }) {
          for (const consumer::Effect& effect : EffectsOf(kind)) {
            if (effect.rules.on_conflict != consumer::OnConflict::kUpdate &&
                effect.rules.on_null_value != consumer::OnNull::kDelete) {
              continue;
            }
            const bool one = !changing && !effect.each;
            changing = effect;
            if (!one) changing->rules.key.clear();
          }
        }
        return changing;
      },
      output);
}

}  // namespace

NewerChanges::NewerChanges(const consumer::PipelineOptions& options, LedgerView* ledger)
    : options_(options), ledger_(ledger) {
  const auto effect = ChangingEffect(options.output);
  if (!effect) return;
  for (const std::string& name : effect->rules.key) {
    const auto column = std::ranges::find(effect->columns, name, &Column::name);
    if (column == effect->columns.end()) continue;
    if (options.handler.any() && column->selector.NeedsValue()) {
      key_.clear();  // what the handler makes of the record
      return;
    }
    key_.push_back(column->selector);
  }
}

tl::expected<void, Error> NewerChanges::Connect() {
  if (reader_ != nullptr) return {};
  auto reader = consumer::TopicReader::Make(options_.kafka);
  if (!reader) return tl::unexpected(reader.error());
  const auto cluster = (*reader)->ClusterId(kLimit);
  if (!cluster) return tl::unexpected(cluster.error());
  reader_ = std::move(*reader);
  identifier_ = std::make_unique<consumer::Identifier>(options_.identity, *cluster);
  decoder_ = consumer::MakeRecordDecoder(options_.kafka.decode);
  auto filter = consumer::MakeRecordFilter(options_.filter);
  if (!filter) return tl::unexpected(filter.error());
  filter_ = std::move(*filter);
  return {};
}

std::optional<std::string> NewerChanges::RowOf(const Record& record, const TopicPartition& where,
                                               const std::string& id) {
  if (key_.empty()) {
    const auto key = record.KafkaKey();
    return key ? std::optional<std::string>(*key) : std::nullopt;
  }
  evaluator_.Begin({.record = &record, .where = &where, .record_id = id});
  std::string row;
  for (const Selector& selector : key_) {
    const auto found = evaluator_.Append(selector, row);
    if (!found || !*found) return std::nullopt;
    row += '\0';
  }
  return row;
}

bool NewerChanges::IsNewer(const TopicRecord& record, const StoredLetter& letter) const {
  auto offset = record.record.offset;
  auto partition = record.where.partition;
  auto timestamp = record.record.timestamp;
  // The replay of another letter is as old as its original.
  const bool accepted = options_.identity.accept_replay_ids;
  if (const auto origin = accepted ? OriginOf(record.record, record.where.topic) : std::nullopt) {
    offset = origin->offset;
    partition = origin->partition;
    timestamp = origin->timestamp;
  }
  const bool same = partition == letter.origin.where.partition;
  if (same && offset == letter.origin.offset) return false;
  if (same && offset > letter.origin.offset) return true;
  return timestamp && letter.timestamp &&
         (same ? *timestamp > *letter.timestamp : *timestamp >= *letter.timestamp);
}

tl::expected<std::vector<NewerChanges::Change>, Error> NewerChanges::Changes(
    const std::vector<StoredLetter>& letters, const Rows& rows) {
  std::unordered_multimap<std::string_view, std::size_t> by_row;
  std::set<std::string> topics;
  std::map<TopicPartition, consumer::Offset> oldest;
  std::optional<Millis> since;
  bool timeless = false;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (!rows[i]) continue;
    const Position& origin = letters[i].origin;
    by_row.emplace(*rows[i], i);
    topics.insert(origin.where.topic);
    const auto [at, added] = oldest.try_emplace(origin.where, origin.offset);
    if (!added) at->second = std::min(at->second, origin.offset);
    timeless = timeless || !letters[i].timestamp;
    if (letters[i].timestamp)
      since = std::min(since.value_or(*letters[i].timestamp), *letters[i].timestamp);
  }
  std::vector<std::deque<Change>> newest(letters.size());
  const auto visit = [&](const TopicRecord& found) {
    Record record = found.record;
    consumer::Identity identity;
    if (decoder_ != nullptr && !consumer::DecodeNow(*decoder_, record, kLimit)) return true;
    if (filter_ != nullptr) {
      consumer::Filter(*filter_, options_.identity.accept_replay_ids, found.where, record);
      if (record.filtered) return true;
    }
    if (!identifier_->Identify(record, found.where, identity)) return true;
    const auto row = RowOf(record, found.where, identity.id);
    const auto [begin, end] = by_row.equal_range(row.value_or(""));
    for (auto at = begin; row && at != end; ++at) {
      const StoredLetter& letter = letters[at->second];
      if (letter.origin.where.topic != found.where.topic || letter.record_id == identity.id ||
          !IsNewer(found, letter)) {
        continue;
      }
      auto& of_letter = newest[at->second];
      of_letter.push_back(
          {at->second, identity.id, {found.where, record.offset}, record.timestamp});
      if (of_letter.size() > kMostChanges) of_letter.pop_front();
    }
    return true;
  };
  for (const std::string& topic : topics) {
    auto ranges = reader_->Ranges(topic, kLimit);
    if (!ranges && ranges.error().code == "unknown_topic") continue;  // its letters fail alone
    if (ranges && since && !timeless) ranges = reader_->Since(std::move(*ranges), *since, kLimit);
    if (!ranges) return tl::unexpected(ranges.error());
    for (consumer::PartitionRange& range : *ranges) {
      // Behind the letter's own record its time does not matter.
      const auto at = oldest.find(range.where);
      if (at != oldest.end()) range.first = std::min(range.first, at->second + 1);
    }
    if (auto read = reader_->Read(*ranges, visit, kLimit); !read)
      return tl::unexpected(read.error());
  }
  std::vector<Change> changes;
  for (auto& of_letter : newest) std::ranges::move(of_letter, std::back_inserter(changes));
  return changes;
}

// By id a row is pruned after ledger.keep; by position nothing is.
bool NewerChanges::MayBeForgotten(const Change& change) const {
  if (options_.identity.ByPosition() || !options_.ledger_keep || !change.timestamp) return false;
  const auto age = locking::ReadClocks().wall.time_since_epoch() - *change.timestamp;
  return age > *options_.ledger_keep;
}

tl::expected<std::vector<std::string>, Error> NewerChanges::Find(
    const std::vector<StoredLetter>& letters) {
  std::vector<std::string> why(letters.size());
  if (ledger_ == nullptr || !ChangingEffect(options_.output)) return why;
  if (auto connected = Connect(); !connected) return tl::unexpected(connected.error());
  Rows rows(letters.size());
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const StoredLetter& letter = letters[i];
    Record record = letter.stored.record;
    const bool decoded =
        decoder_ == nullptr || consumer::DecodeNow(*decoder_, record, kLimit).has_value();
    if (decoded) rows[i] = RowOf(record, letter.origin.where, letter.record_id);
    if (!rows[i]) {
      why[i] = fmt::format(
          "which row it changes is not known without a key, nor whether a newer change of it was "
          "written; {}",
          kInsist);
    }
  }
  const auto changes = Changes(letters, rows);
  if (!changes) return tl::unexpected(changes.error());
  for (std::size_t begin = 0; begin < changes->size(); begin += kIdsAtOnce) {
    const std::size_t end = std::min(begin + kIdsAtOnce, changes->size());
    std::vector<std::string> ids;
    for (std::size_t i = begin; i < end; ++i) ids.push_back((*changes)[i].id);
    const auto found = ledger_->Lookup(ids, kLimit);
    if (!found) return tl::unexpected(found.error());
    for (std::size_t i = begin; i < end; ++i) {
      const Change& change = (*changes)[i];
      const auto& row = (*found)[i - begin];
      const bool written = row && row->token != locking::Token();
      if (row ? !written : !MayBeForgotten(change)) continue;
      why[change.letter] =
          fmt::format("a newer change of the key was written: {}; {}", change.at.Text(), kInsist);
    }
  }
  return why;
}

}  // namespace fencepost::cli
