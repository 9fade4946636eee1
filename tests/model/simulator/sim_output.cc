#include "tests/model/simulator/sim_output.h"

#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/record/position_id.h"
#include "locking/base/check.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::EffectIsWritten;
using consumer::LedgerEntry;
using consumer::Offset;
using consumer::OutputError;
using consumer::PositionKey;
using consumer::PositionMemory;
using consumer::PositionPart;
using consumer::PositionRow;
using consumer::WriteItem;
using consumer::WriteOutcome;

namespace {

constexpr int kMostRecords = 500;

consumer::OutputTerms TermsOf(const World& world, const Process& process) {
  consumer::OutputTerms terms;
  terms.group = kGroup;
  terms.keep = world.plan.keep;
  terms.clock = [&process] { return process.now(); };
  terms.by_position = world.plan.by_position;
  return terms;
}

[[noreturn]] void NotAsked(const char* what) {
  FENCEPOST_CHECK(false, what);
  std::abort();
}

}  // namespace

SimOutput::SimOutput(World& world, const Process& process)
    : LedgerOutput(kPipeline, fmt::format("w{}", process.index), TermsOf(world, process),
                   kMostRecords, consumer::RowShape{}),
      world_(world) {}

tl::expected<void, OutputError> SimOutput::Prepare() {
  memory_.OnConnected();
  return CheckLostCommits(false, "table", "");
}

void SimOutput::Remember(const std::vector<WriteItem>& items,
                         const std::vector<WriteOutcome>& outcomes) {
  if (!terms_.by_position) return lost_commits_.Remember(clock_(), items, outcomes);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!EffectIsWritten(outcomes[i].result)) continue;
    const Offset offset = items[i].record->offset;
    PositionPart part{.key = PositionKey::Of(*consumer::ParsePositionId(items[i].record_id))};
    part.ranges.Add(offset, offset + 1);
    memory_.Acknowledge(part, 0);
  }
}

SimOutput::Answer<SimOutput::Entries> SimOutput::LookUpIds(const std::vector<std::string>& ids) {
  Entries entries;
  for (const std::string& id : ids) {
    const Ledger::Row* const row = world_.ledger.Find(id);
    auto& entry = entries.emplace_back();
    if (row == nullptr) continue;
    entry = LedgerEntry{.token = row->token, .crc = row->crc, .source = row->source};
  }
  return entries;
}

SimOutput::Answer<PositionMemory::Rows> SimOutput::ReadPositions(const Parts& parts) {
  std::map<PositionKey, PositionRow> rows;
  for (const auto& [id, row] : world_.ledger.rows()) {
    const auto position = consumer::ParsePositionId(id);
    rows[PositionKey::Of(*position)].done.Add(position->offset, position->offset + 1);
  }
  PositionMemory::Rows found;
  for (const auto& part : parts) {
    const auto row = rows.find(part.key);
    found.push_back(row == rows.end() ? std::nullopt : std::optional(row->second));
  }
  return found;
}

SimOutput::Answer<std::size_t> SimOutput::PruneIds(const consumer::PruneScope& scope, std::size_t) {
  const auto pruned = world_.ledger.Prune(scope, world_.time.now());
  if (!pruned.empty()) world_.Strike(Fault::kPruned);
  for (const auto& [id, row] : pruned) {
    world_.Note("pruned: {} of w{}", id, row.by.worker);
    world_.Count("rows pruned");
    world_.checks.OnPruned(id, row.source);
  }
  return pruned.size();
}

tl::expected<std::vector<WriteOutcome>, OutputError> SimOutput::Write(
    const consumer::WriteRequest&) {
  NotAsked("SimWriter writes");
}
SimOutput::Answer<std::size_t> SimOutput::ForgetIds(const std::vector<std::string>&) {
  NotAsked("nobody forgets");
}
SimOutput::Answer<std::size_t> SimOutput::TakeBack(const Parts&) { NotAsked("nobody takes back"); }

}  // namespace fencepost::simulator
