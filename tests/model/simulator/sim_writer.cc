#include "tests/model/simulator/sim_writer.h"

#include <algorithm>
#include <array>
#include <set>
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
// By consumer::WriteFailure.
constexpr std::array kFailed{"transactions not happened", "transactions locked out",
                             "transactions too slow", "transactions unanswered",
                             "transactions refused"};

template <typename Items>
std::vector<LedgerItem> Rows(const Items& items) {
  std::vector<LedgerItem> rows;
  for (const auto& item : items) rows.push_back(item.row);
  return rows;
}

}  // namespace

SimWriter::SimWriter(World& world, SimWorker& worker)
    : world_(world), worker_(worker), retry_(kMostRecords, world.MostInARow()) {}

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
  Begin();
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
  worker_.core().OnLookedUp(*lookup, entries, worker_.process().now());
  worker_.Act();
  Next();
}

// --- writes ------------------------------------------------------------------------------------

void SimWriter::Begin() {
  items_.clear();
  for (const consumer::WriteItem& item : batch_->request.items) {
    std::string source = consumer::SourceText(*item.where, item.record->offset);
    const bool refused = world_.Refuses(source);
    items_.push_back({{.id = std::string(item.record_id),
                       .source = std::move(source),
                       .token = item.token,
                       .crc = item.crc,
                       .refused = refused,
                       .chain = item.chain},
                      item.record->epoch});
  }
  world_.checks.OnBatch(batch_->request);
  retry_.Begin(batch_->id, batch_->answered, batch_->request.items);
  Go();
}

void SimWriter::Go() {
  const consumer::WriteRetry::Step step = retry_.Next();
  refuses_all_ = !step.reason.empty();
  switch (step.kind) {
    case consumer::WriteRetry::Step::Kind::kWrite:
      return Attempt(step.items);
    case consumer::WriteRetry::Step::Kind::kWait:
      if (refuses_all_) world_.Count("batches handed back");
      return worker_.process().Later(Process::kOutput, step.wait, [this, attempt = ++attempt_] {
        if (attempt == attempt_) Go();
      });
    case consumer::WriteRetry::Step::Kind::kDone:
      worker_.core().OnWritten(std::move(batch_), retry_.Take(), worker_.process().now());
      batch_ = nullptr;
      worker_.Act();
      return Next();
  }
}

// For half a second at a time the table is broken, or somebody sits on it, or it is slow.
Ledger::Mood SimWriter::Mood(World& world) {
  const auto moment = static_cast<std::uint64_t>(world.time.now() / Millis(500));
  const std::uint64_t hash = (world.plan.seed * 31 + moment) * 0x9e3779b97f4a7c15ULL >> 20;
  if (!world.FaultsOn() || hash % 1000 >= static_cast<std::uint64_t>(world.plan.table_faults)) {
    return Ledger::Mood::kUsual;
  }
  constexpr std::array kMoods{Ledger::Mood::kRefusesAll, Ledger::Mood::kLocked,
                              Ledger::Mood::kSlow};
  return kMoods[hash / 1000 % kMoods.size()];
}

// Lines: what is refused has none, and what is behind it in its chain waits.
std::vector<WriteOutcome> SimWriter::Append(const std::vector<Item>& items) {
  std::vector<WriteOutcome> outcomes;
  std::set<std::uint64_t> held;
  for (const Item& item : items) {
    const bool behind = held.contains(item.row.chain);
    outcomes.push_back({.result = behind             ? WriteResult::kNotWritten
                                  : item.row.refused ? WriteResult::kBadRecord
                                                     : WriteResult::kCommitted});
    if (!behind && item.row.refused && item.row.chain != 0) held.insert(item.row.chain);
  }
  return outcomes;
}

// One transaction, or lines that are appended.
Ledger::Outcomes SimWriter::Happen(World& world, const std::vector<Item>& items, By by) {
  by.at = world.time.now();
  Ledger::Outcomes outcomes;
  if (world.plan.flow.finality == Finality::kLedger) {
    outcomes = world.ledger.Write(Rows(items), Mood(world));
  } else {
    outcomes = Append(items);
  }
  if (!outcomes) {
    world.Count(kFailed[static_cast<std::size_t>(outcomes.error())]);
    return outcomes;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if ((*outcomes)[i].result != WriteResult::kCommitted) continue;
    by.epoch = items[i].epoch;
    world.checks.OnEffect(items[i].row.id, items[i].row.source, by);
  }
  world.Note("w{} transaction of {} records is committed", by.worker, items.size());
  return outcomes;
}

// The worker may stall before it sends; once sent, the transaction goes on without it.
void SimWriter::Attempt(const std::vector<std::size_t>& places) {
  const int attempt = ++attempt_;
  std::vector<Item> part;
  for (const std::size_t place : places) part.push_back(items_[place]);
  worker_.process().Later(Process::kOutput, world_.HostDelay(), [this, attempt, part] {
    World& world = world_;
    Process& process = worker_.process();
    const bool ledger = world.plan.flow.finality == Finality::kLedger;
    const bool trouble = world.FaultsOn() && world.random.Chance(world.plan.output_faults);
    const bool late = trouble && ledger && world.random.Chance(300);
    const bool never = trouble && !late && (!ledger || world.random.Chance(400));
    const Nanos limit = world.plan.write_takes + Millis(200);
    const Nanos takes = late ? world.random.Time(limit, limit * 4)
                             : world.random.Time(microseconds(300), world.plan.write_takes);
    if (ledger) world.ledger.Send(Rows(part));
    world.time.In(takes, [this, &world, &process, life = process.incarnation(), attempt, never,
                          trouble, ledger, items = part] {
      if (never && ledger) world.ledger.Forget(Rows(items));
      if (never) return;
      const auto outcomes = Happen(world, items, {process.index, life, 0, Nanos(0)});
      if (trouble || process.incarnation() != life) return;
      process.Later(Process::kOutput, world.NetDelay(),
                    [this, attempt, outcomes] { OnAnswer(attempt, outcomes); });
    });
    if (!trouble) return;
    process.Later(Process::kOutput, limit, [this, attempt] { OnNoAnswer(attempt); });
  });
}

void SimWriter::OnAnswer(int attempt, const Ledger::Outcomes& outcomes) {
  if (attempt != attempt_ || batch_ == nullptr) return;
  if (outcomes) {
    retry_.OnWritten(*outcomes);
    return Go();
  }
  Fail(outcomes.error());
}

void SimWriter::OnNoAnswer(int attempt) {
  if (attempt != attempt_) return;
  ++attempt_;
  const bool told = world_.random.Chance(500);
  Fail(told ? consumer::WriteFailure::kUnavailable : consumer::WriteFailure::kClientTimeout);
}

void SimWriter::Fail(consumer::WriteFailure failure) {
  consumer::OutputError error;
  error.error.what = "failed";
  error.failure = failure;
  retry_.OnFailed(error);
  Go();
}

void SimWriter::OnUnavailable(int attempt) {
  if (attempt != attempt_) return;
  ++attempt_;
  worker_.process().Later(Process::kOutput, backoff_, [this] { Ask(); });
  backoff_ = std::min<Nanos>(backoff_ * 2, kMaxBackoff);
}

}  // namespace fencepost::simulator
