#include "tests/model/simulator/sim_output.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::LedgerEntry;
using consumer::OutputError;
using consumer::PositionMemory;
using consumer::WriteItem;
using consumer::WriteOutcome;

namespace {

constexpr int kMostRecords = 500;

// Partitions are without a leader for a while at a time.
bool LeaderIsAway(const World& world, std::int32_t partition) {
  if (!world.FaultsOn()) return false;
  const auto moment = static_cast<std::uint64_t>(world.time.now() / (world.plan.outage / 2));
  const auto place = moment * 64 + static_cast<std::uint64_t>(partition);
  return ((world.plan.seed * 31 + place) * 0x9e3779b97f4a7c15ULL >> 20) % 1000 < 300;
}

consumer::OutputTerms TermsOf(const World& world, const Process& process) {
  consumer::OutputTerms terms;
  terms.group = kGroup;
  terms.keep = world.plan.keep;
  terms.clock = [&process] { return process.now(); };
  terms.by_position = world.plan.by_position;
  terms.filtered = world.plan.filters;
  if (!world.plan.Replaces()) return terms;
  terms.read_log = [&world, &process](const consumer::LogQuestion& asked)
      -> tl::expected<std::optional<consumer::LogState>, fencepost::Error> {
    if (world.time.now() < process.kafka_cut_until || LeaderIsAway(world, asked.where.partition)) {
      return tl::unexpected(fencepost::Error{"brokers_away", "no broker answers", "", ""});
    }
    return world.broker.Look(asked.where, asked.offsets);
  };
  return terms;
}

[[noreturn]] void NotAsked(const char* what) {
  FENCEPOST_CHECK(false, what);
  std::abort();
}

tl::unexpected<OutputError> Failed(consumer::WriteFailure failure, std::string_view code = "") {
  return tl::unexpected(OutputError{
      .error = {std::string(code), "drawn", "table", ""}, .failure = failure, .kind = "drawn"});
}

std::string TimeOf(const Ledger::Row& row) { return fmt::format("{:020}", row.by.at.count()); }

}  // namespace

consumer::EffectShapes ShapesOfTables() {
  using Kind = consumer::Selector::Kind;
  const consumer::Selector row{Kind::kHeader, "row", false};
  consumer::RowShape shape;
  shape.columns = {{.name = "key", .selector = {Kind::kHeader, "row", false}},
                   {.name = "made", .selector = {Kind::kTimestamp, "", false}}};
  shape.key = {0};
  shape.fence = 1;
  shape.on_conflict = consumer::OnConflict::kUpdate;
  consumer::RowShape audit;
  audit.columns = {{.name = "id", .selector = {Kind::kRecordId, "", false}}};
  consumer::Effect when_it_has_one;
  when_it_has_one.when.all = {{.selector = row, .text = std::nullopt}};
  return {{.shape = std::move(shape), .tables = {"table"}, .effect = {}, .name = "effect 1: "},
          {.shape = std::move(audit),
           .tables = {"audit"},
           .effect = std::move(when_it_has_one),
           .name = "effect 2: "}};
}

OutputItem ItemOf(const World& world, const consumer::BatchRows& rows, std::size_t record) {
  const WriteItem& item = rows.item(record);
  const bool any = rows.rows(record) > 0;
  FENCEPOST_CHECK(rows.of(0).rows(record) == rows.of(1).rows(record), "one effect of two");
  std::string source = consumer::SourceText(*item.where, item.record->offset);
  const std::size_t refused = world.Refuses(source);
  const bool letter = item.dead_letter != nullptr;
  return {{.id = std::string(item.record_id),
           .source = std::move(source),
           .token = item.token,
           .crc = item.crc,
           .refused = refused,
           .makes_rows = any,
           .letter = letter,
           .chain = item.chain,
           .key = any ? std::string(*rows.of(0).cell(record, 0)) : "",
           .fence = any ? std::stoll(std::string(*rows.of(0).cell(record, 1))) : 0},
          world.broker.SourceOf(*item.where, *item.record),
          item.record->epoch};
}

SimOutput::SimOutput(World& world, const Process& process)
    : StepwiseOutput(kPipeline, fmt::format("w{}", process.index), TermsOf(world, process),
                     kMostRecords, ShapesOfTables()),
      world_(world) {}

SimOutput::Answer<void> SimOutput::Connect() {
  memory_.OnConnected();
  return CheckLostCommits(false, "");
}

void SimOutput::Remember(const std::vector<WriteItem>& items,
                         const std::vector<WriteOutcome>& outcomes) {
  lost_commits_.Remember(clock_(), items, outcomes);
}

tl::expected<std::shared_ptr<PositionWrite>, OutputError> SimOutput::OnSending(
    const std::vector<WriteItem>& items) {
  std::vector<WriteOutcome> outcomes(items.size());
  const consumer::WriteRequest request{.items = items, .offsets = {}};
  if (auto filled = FillRows(request, outcomes); !filled) {
    return tl::unexpected(filled.error());
  }
  FENCEPOST_CHECK(rows_.size() == items.size(), "every record has its row");
  if (auto same = CheckLogs(items); !same) return tl::unexpected(same.error());
  return std::make_shared<PositionWrite>(worker_, rows_);
}

tl::expected<void, OutputError> SimOutput::OnCommitted(const PositionWrite& write) {
  changes_.OnLocked(write.before());
  for (const std::size_t record : write.reopened()) changes_.Reopen(record);
  return changes_.OnCommitted();
}

tl::expected<SimOutput::Entries, OutputError> SimOutput::AnswerFrom(
    const std::vector<std::string>& ids, const consumer::PositionLookup& asked,
    const PositionTable::Rows& rows) {
  auto entries = memory_.Answer(asked, rows);
  return entries ? WithLetters(ids, std::move(*entries)) : entries;
}

SimOutput::Answer<SimOutput::Entries> SimOutput::LookUpIds(const std::vector<std::string>& ids) {
  Entries entries;
  for (const std::string& id : ids) {
    const Ledger::Row* const row = world_.ledger.Find(id);
    auto& entry = entries.emplace_back();
    if (row == nullptr || (terms_.by_position && !row->letter)) continue;
    entry = LedgerEntry{.token = row->token, .crc = row->crc, .source = row->source};
  }
  return entries;
}

SimOutput::Answer<PositionMemory::Rows> SimOutput::ReadPositions(const Parts& parts) {
  return world_.ledger.positions().Read(parts);
}

SimOutput::Answer<bool> SimOutput::HasTopic(const std::string&) {
  NotAsked("no topic is asked for");
}
SimOutput::Answer<std::size_t> SimOutput::ForgetIds(const std::vector<std::string>&) {
  NotAsked("nobody forgets");
}

// --- pruning -----------------------------------------------------------------------------------

SimOutput::Answer<void> SimOutput::VisitOldRows(std::chrono::seconds keep, const std::string& from,
                                                bool behind,
                                                const std::function<bool(OldRow)>& visit) {
  std::vector<OldRow> old;
  for (const auto& [id, row] : world_.ledger.rows()) {
    const std::string at = TimeOf(row);
    const bool in_window = behind ? at > from : at >= from;
    if (in_window && world_.time.now() - row.by.at > keep) old.push_back({id, row.source, at});
  }
  std::ranges::stable_sort(old, {}, &OldRow::completed_at);
  for (OldRow& row : old) {
    if (!visit(std::move(row))) break;
  }
  return {};
}

SimOutput::Answer<std::size_t> SimOutput::DeleteRows(const std::vector<OldRow>& rows) {
  if (!rows.empty()) world_.Strike(Fault::kPruned);
  for (const OldRow& old : rows) {
    const Ledger::Row row = *world_.ledger.Find(old.id);
    world_.ledger.Erase(old.id);
    world_.Note("pruned: {} of w{}", old.id, row.by.worker);
    world_.Count("rows pruned");
    if (row.token != locking::Token()) world_.checks.OnPruned(old.id, row.source);
  }
  return rows.size();
}

// --- a transaction -----------------------------------------------------------------------------

tl::expected<SimOutput::Outcomes, OutputError> SimOutput::Search(
    const consumer::WriteRequest& request, const Terms& terms) {
  terms_of_search_ = terms;
  auto outcomes = Write(request);
  terms_of_search_ = {};
  return outcomes;
}

SimOutput::Answer<void> SimOutput::Begin() {
  staged_ = saved_ = {};
  if (terms_of_search_.mood == Mood::kFull) return Failed(consumer::WriteFailure::kUnavailable);
  return {};
}

SimOutput::Answer<void> SimOutput::Execute(const char* sql) {
  const std::string_view text(sql);
  if (text.starts_with("SAVEPOINT")) {
    const bool breaks = terms_of_search_.end == Terms::End::kBreaks && world_.random.Chance(300);
    if (breaks) return Failed(consumer::WriteFailure::kUnavailable, kUnanswered);
    saved_ = staged_;
  } else if (text.starts_with("ROLLBACK TO")) {
    staged_ = saved_;
  }
  return {};
}

SimOutput::Answer<SimOutput::Entries> SimOutput::LockIds(const std::vector<std::string>& ids) {
  const auto locked = [this](const std::string& id) { return world_.ledger.Locked(id); };
  if (std::ranges::any_of(ids, locked)) return Failed(consumer::WriteFailure::kLocked);
  return LookUpIds(ids);
}

SimOutput::Answer<PositionMemory::Rows> SimOutput::LockPositions(const Parts& parts) {
  const auto locked = [this](const consumer::PositionPart& part) {
    return world_.ledger.Locked(consumer::PositionPrefix(part.key));
  };
  if (std::ranges::any_of(parts, locked)) return Failed(consumer::WriteFailure::kLocked);
  return ReadPositions(parts);
}

SimOutput::Answer<void> SimOutput::StorePositions(const Changes& changes) {
  for (const auto& change : changes) staged_.positions.emplace_back(change.key, change.row);
  return {};
}

SimOutput::Answer<void> SimOutput::ForgetLetters(const consumer::PositionKey& key,
                                                 const consumer::PositionRange& range) {
  world_.ledger.Erase(key, range);
  return {};
}

// With the rows of the ledger, which a record has however many rows it makes.
SimOutput::Answer<void> SimOutput::WriteEffects(const Records& fresh) {
  using enum consumer::WriteFailure;
  const Mood mood = terms_of_search_.mood;
  if (mood == Mood::kLocked) return Failed(kLocked);
  if (mood == Mood::kSlow && fresh.size() > 2) return Failed(kTooSlow);
  waits_ = false;
  for (const std::size_t record : fresh) {
    staged_.records.push_back(ItemOf(world_, rows_, record));
    waits_ |= world_.ledger.Sent(staged_.records.back().row.id);
  }
  return StepwiseOutput::WriteEffects(fresh);
}

SimOutput::Answer<std::size_t> SimOutput::ChangeRows(Change, const Rows& rows) {
  using enum consumer::WriteFailure;
  FENCEPOST_CHECK(rows.size() == 1, "a statement of several rows");
  const std::size_t effect = rows.front().table;
  LedgerItem item = ItemOf(world_, rows_, rows.front().record).row;
  const bool all = effect == 0 && terms_of_search_.mood == Mood::kRefusesAll;
  if (all || item.refused == effect + 1) {
    world_.Count(fmt::format("refused by effect {}", effect + 1));
    return Failed(waits_ ? kLocked : kRefused);
  }
  const bool newer = effect == 0 && FindsNewer(item);
  staged_.rows.at(effect).push_back(std::move(item));
  return std::size_t{newer ? 1U : 0U};
}

SimOutput::Answer<SimOutput::Rows> SimOutput::FindNewer(const Rows& rows) {
  Rows newer;
  std::ranges::copy_if(rows, std::back_inserter(newer), [this](const Row& row) {
    return FindsNewer(ItemOf(world_, rows_, row.record).row);
  });
  return newer;
}

bool SimOutput::FindsNewer(const LedgerItem& item) const {
  return world_.ledger.HasNewer(item) ||
         std::ranges::any_of(staged_.rows.front(), [&](const LedgerItem& before) {
           return before.key == item.key && before.fence > item.fence;
         });
}

SimOutput::Answer<void> SimOutput::Commit() {
  using End = Terms::End;
  const End end = terms_of_search_.end;
  if (end == End::kLate) {
    CommitLate();
  } else if (end != End::kBreaks) {
    Happen(world_, staged_, terms_of_search_.by);
  }
  if (end != End::kAnswered) return Failed(consumer::WriteFailure::kUnavailable, kUnanswered);
  return {};
}

// It holds its locks until then.
void SimOutput::CommitLate() {
  std::set<std::string> names;
  for (const OutputItem& item : staged_.records) names.insert(item.row.id);
  for (const auto& [key, row] : staged_.positions) names.insert(consumer::PositionPrefix(key));
  world_.ledger.Lock(names);
  world_.time.At(terms_of_search_.late,
                 [&world = world_, names, staged = std::move(staged_), by = terms_of_search_.by,
                  session = world_.ledger.session()] {
                   world.ledger.Unlock(names);
                   if (session == world.ledger.session()) Happen(world, staged, by);
                 });
  staged_ = {};
}

void SimOutput::Happen(World& world, const Staged& staged, By by) {
  by.at = world.time.now();
  for (const auto& [key, row] : staged.positions) world.ledger.Store(key, row, by.at);
  for (const OutputItem& item : staged.records) {
    for (std::size_t effect = 0; effect < kEffects && item.row.makes_rows; ++effect) {
      const bool there =
          std::ranges::count(staged.rows.at(effect), item.row.id, &LedgerItem::id) == 1;
      if (!there)
        world.Violate("17", fmt::format("{} is half there: not its row of effect {}", item.row.id,
                                        effect + 1));
    }
    by.epoch = item.epoch;
    const bool put = world.ledger.Put(item.row, by);
    if (item.row.makes_rows) {
      world.checks.OnEffect(item.row.id, item.source, by, !put);
    } else if (item.row.letter) {
      world.checks.OnLetterDone(item.row.id);
    } else {
      world.checks.OnNoOutput(item.row.id, item.source);
    }
  }
  world.Note("w{} transaction of {} records is committed", by.worker, staged.records.size());
}

}  // namespace fencepost::simulator
