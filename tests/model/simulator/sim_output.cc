#include "tests/model/simulator/sim_output.h"

#include <cstdlib>
#include <optional>

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

}  // namespace

SimOutput::SimOutput(World& world, const Process& process)
    : LedgerOutput(kPipeline, fmt::format("w{}", process.index), TermsOf(world, process),
                   kMostRecords, consumer::RowShape{}),
      world_(world) {}

SimOutput::Answer<void> SimOutput::Connect() {
  memory_.OnConnected();
  return CheckLostCommits(false, "");
}

void SimOutput::Remember(const std::vector<WriteItem>& items,
                         const std::vector<WriteOutcome>& outcomes) {
  lost_commits_.Remember(clock_(), items, outcomes);
}

tl::expected<std::shared_ptr<PositionWrite>, OutputError> SimOutput::Begin(
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
  return changes_.OnCommitted();
}

tl::expected<SimOutput::Entries, OutputError> SimOutput::AnswerFrom(
    const consumer::PositionLookup& asked, const PositionTable::Rows& rows) {
  return memory_.Answer(asked, rows);
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
  return world_.ledger.positions().Read(parts);
}

SimOutput::Answer<std::size_t> SimOutput::PruneIds(const consumer::PruneScope& scope, std::size_t) {
  const auto pruned = world_.ledger.Prune(scope, world_.time.now());
  if (!pruned.empty()) world_.Strike(Fault::kPruned);
  for (const auto& [id, row] : pruned) {
    world_.Note("pruned: {} of w{}", id, row.by.worker);
    world_.Count("rows pruned");
    if (row.token != locking::Token()) world_.checks.OnPruned(id, row.source);
  }
  return pruned.size();
}

SimOutput::Answer<void> SimOutput::WriteRows(Outcomes&) { NotAsked("SimWriter writes"); }
SimOutput::Answer<bool> SimOutput::HasTopic(const std::string&) {
  NotAsked("no topic is asked for");
}
SimOutput::Answer<std::size_t> SimOutput::ForgetIds(const std::vector<std::string>&) {
  NotAsked("nobody forgets");
}

SimOutput::Answer<std::size_t> SimOutput::TakeBack(const Parts& parts) {
  std::size_t taken = 0;
  for (const auto& part : parts) {
    auto row = world_.ledger.positions().Read({part}).front();
    if (!row) continue;
    const std::size_t gone = consumer::TakeBack(part.ranges, *row);
    if (gone > 0) world_.ledger.TakeBack(part.key, *row, world_.time.now());
    taken += gone;
  }
  return taken;
}

}  // namespace fencepost::simulator
