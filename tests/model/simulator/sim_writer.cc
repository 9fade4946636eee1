#include "tests/model/simulator/sim_writer.h"

#include <algorithm>
#include <utility>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using consumer::Finality;
using consumer::LedgerEntry;
using consumer::WriteOutcome;
using consumer::WriteResult;

constexpr Millis kFirstBackoff{50};
constexpr Millis kMaxBackoff{5000};

}  // namespace

void SimWriter::Write(std::unique_ptr<consumer::WriteBatch> batch) {
  queue_.push_back(std::move(batch));
  Next();
}

void SimWriter::LookUp(std::unique_ptr<consumer::LookupBatch> lookup) {
  lookups_.push_back(std::move(lookup));
  Next();
}

void SimWriter::Next() {
  if (batch_ != nullptr || lookup_ != nullptr) return;
  backoff_ = kFirstBackoff;
  if (!lookups_.empty()) {
    lookup_ = std::move(lookups_.front());
    lookups_.pop_front();
    return Ask();
  }
  if (queue_.empty()) return;
  batch_ = std::move(queue_.front());
  queue_.pop_front();
  items_.clear();
  for (const consumer::WriteItem& item : batch_->request.items) {
    std::string source = consumer::SourceText(*item.where, item.record->offset);
    const bool refused = world_.Refuses(source);
    items_.push_back(
        {{std::string(item.record_id), std::move(source), item.token, item.crc, refused},
         item.record->epoch});
  }
  world_.checks.OnBatch(batch_->request);
  Attempt();
}

// --- lookups -----------------------------------------------------------------------------------

void SimWriter::Ask() {
  const int attempt = ++attempt_;
  worker_.process().Later(Process::kOutput, world_.HostDelay(), [this, attempt] {
    const bool first = batch_ != nullptr && batch_->began == locking::Instant();
    if (first) batch_->began = worker_.process().now().boot;
    World& world = world_;
    Process& process = worker_.process();
    if (world.FaultsOn() && world.random.Chance(world.plan.output_faults)) {
      process.Later(Process::kOutput, world.plan.write_takes,
                    [this, attempt] { OnUnavailable(attempt); });
      return;
    }
    const Nanos takes = world.random.Time(microseconds(200), world.plan.write_takes / 8);
    world.time.In(takes, [this, &world, &process, attempt, life = process.incarnation()] {
      if (process.incarnation() != life) return;
      std::vector<std::optional<LedgerEntry>> entries;
      for (const std::string& id : lookup_->ids) {
        const Ledger::Row* row = world.ledger.Find(id);
        entries.emplace_back();
        if (row == nullptr) continue;
        entries.back() = LedgerEntry{.token = row->token,
                                     .crc = row->crc,
                                     .worker = {},
                                     .source = row->source,
                                     .completed_at = {}};
      }
      process.Later(Process::kOutput, world.NetDelay(),
                    [this, attempt, entries] { OnFound(attempt, entries); });
    });
  });
}

void SimWriter::OnFound(int attempt, const std::vector<std::optional<LedgerEntry>>& entries) {
  if (attempt != attempt_) return;
  const auto lookup = std::exchange(lookup_, nullptr);
  world_.Count("lookups", static_cast<int>(entries.size()));
  worker_.flow().OnLookedUp(*lookup, entries, worker_.process().now());
  worker_.Act();
  Next();
}

// --- writes ------------------------------------------------------------------------------------

// One transaction, or lines that are appended.
std::vector<WriteOutcome> SimWriter::Happen(World& world, const std::vector<Item>& items, By by) {
  by.at = world.time.now();
  std::vector<WriteOutcome> outcomes;
  if (world.plan.flow.finality == Finality::kLedger) {
    std::vector<LedgerItem> rows;
    for (const Item& item : items) rows.push_back(item.row);
    outcomes = world.ledger.Write(rows);
  } else {
    for (const Item& item : items) {
      const auto result = item.row.refused ? WriteResult::kBadRecord : WriteResult::kCommitted;
      outcomes.push_back({.result = result, .detail = {}});
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (outcomes[i].result != WriteResult::kCommitted) continue;
    by.epoch = items[i].epoch;
    world.checks.OnEffect(items[i].row.id, items[i].row.source, by);
  }
  world.Note("w{} transaction of {} records is committed", by.worker, items.size());
  return outcomes;
}

// The worker may stand still before it sends; once sent, the transaction goes on without it.
void SimWriter::Attempt() {
  const int attempt = ++attempt_;
  worker_.process().Later(Process::kOutput, world_.HostDelay(), [this, attempt] {
    World& world = world_;
    Process& process = worker_.process();
    const bool ledger = world.plan.flow.finality == Finality::kLedger;
    const bool trouble = world.FaultsOn() && world.random.Chance(world.plan.output_faults);
    const bool late = trouble && ledger && world.random.Chance(300);
    const bool never = trouble && !late && (!ledger || world.random.Chance(400));
    const Nanos limit = world.plan.write_takes + Millis(200);
    const Nanos takes = late ? world.random.Time(limit, limit * 4)
                             : world.random.Time(microseconds(300), world.plan.write_takes);
    world.time.In(takes, [this, &world, &process, life = process.incarnation(), attempt, never,
                          trouble, items = items_] {
      if (never) return;
      const auto outcomes = Happen(world, items, {process.index, life, 0, Nanos(0)});
      if (trouble || process.incarnation() != life) return;
      process.Later(Process::kOutput, world.NetDelay(),
                    [this, attempt, outcomes] { OnAnswer(attempt, outcomes); });
    });
    if (!trouble) return;
    process.Later(Process::kOutput, limit, [this, attempt] { OnUnavailable(attempt); });
  });
}

void SimWriter::OnAnswer(int attempt, const std::vector<WriteOutcome>& outcomes) {
  if (attempt != attempt_ || batch_ == nullptr) return;
  worker_.flow().OnWritten(std::move(batch_), outcomes, worker_.process().now());
  batch_ = nullptr;
  worker_.Act();
  Next();
}

void SimWriter::OnUnavailable(int attempt) {
  if (attempt != attempt_) return;
  ++attempt_;
  worker_.process().Later(Process::kOutput, backoff_,
                          [this] { lookup_ != nullptr ? Ask() : Attempt(); });
  backoff_ = std::min<Nanos>(backoff_ * 2, kMaxBackoff);
}

}  // namespace fencepost::simulator
