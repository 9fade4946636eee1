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
    : world_(world),
      worker_(worker),
      retry_(kMostRecords, world.MostInARow()),
      output_(world, worker.process()),
      session_(world.ledger.Away(world.time.now()) ? 0 : world.ledger.session()) {}

bool SimWriter::HasLedger() const { return world_.plan.flow.finality == Finality::kLedger; }

void SimWriter::Write(std::unique_ptr<consumer::WriteBatch> batch) {
  queue_.Push(std::move(batch));
  NextBySelf();
}

void SimWriter::LookUp(std::unique_ptr<consumer::LookupBatch> lookup) {
  queue_.Push(std::move(lookup));
  NextBySelf();
}

// On a thread of its own: what it answers at once comes after what was asked for beside it.
void SimWriter::NextBySelf() {
  worker_.process().Later(Process::kOutput, Nanos(0), [this] { Next(); });
}

void SimWriter::SetPrunable(std::vector<consumer::SourceOffset> committed) {
  if (ended_ || batch_ != nullptr || lookup_ != nullptr) return;
  consumer::PruneScope scope{
      .keep = *world_.plan.keep, .committed = std::move(committed), .topics = {kTopic}};
  worker_.process().Later(
      Process::kOutput, world_.NetDelay(), [this, scope = std::move(scope), session = session_] {
        if (ended_ || worker_.process().CutOff() || session != world_.ledger.session()) return;
        (void)output_.Prune(scope, 1000);
      });
}

void SimWriter::Stop() {
  ended_ = true;
  ++attempt_;
}

// Nothing follows.
void SimWriter::End(const fencepost::Error& error) {
  Stop();
  worker_.core().OnOutputFailed(error, worker_.process().now());
  worker_.Act();
}

void SimWriter::Next() {
  if (ended_ || batch_ != nullptr || lookup_ != nullptr) return;
  backoff_ = kFirstBackoff;
  consumer::WriterQueue::Turn turn = queue_.Take();
  batch_ = std::move(turn.batch);
  lookup_ = std::move(turn.lookup);
  if (lookup_ != nullptr) {
    asked_.emplace(*lookup_);
    return Ask();
  }
  if (batch_ != nullptr) Begin();
}

// --- the connection ----------------------------------------------------------------------------

template <typename Then>
void SimWriter::Connected(int attempt, Then then) {
  if (session_ != 0 || !HasLedger()) return then();
  worker_.process().Later(Process::kOutput, 2 * world_.NetDelay(),
                          [this, attempt, then = std::move(then)] {
                            if (attempt != attempt_) return;
                            OnConnecting(attempt);
                            if (session_ != 0) then();
                          });
}

void SimWriter::OnConnecting(int attempt) {
  if (world_.ledger.Away(world_.time.now()) || worker_.process().CutOff()) return OnBroken(attempt);
  session_ = world_.ledger.session();
  if (const auto fine = output_.Prepare(); !fine) {
    session_ = 0;
    End(fine.error().error);
  }
}

// Whether it is of no use or was closed: the next try makes a new one.
void SimWriter::OnBroken(int attempt) {
  if (attempt != attempt_) return;
  ++attempt_;
  session_ = 0;
  lookup_ != nullptr ? AskAgainLater() : Fail({.unanswered = true});
}

// --- lookups -----------------------------------------------------------------------------------

void SimWriter::Ask() {
  const int attempt = ++attempt_;
  worker_.process().Later(Process::kOutput, world_.HostDelay(), [this, attempt] {
    Connected(attempt, [this, attempt] { Question(attempt); });
  });
}

void SimWriter::Question(int attempt) {
  World& world = world_;
  Process& process = worker_.process();
  if (process.CutOff() || world.Strikes(Fault::kUnanswered, world.plan.output_faults)) {
    process.Later(Process::kOutput, world.plan.write_takes, [this, attempt] { OnBroken(attempt); });
    return;
  }
  const Nanos takes = world.random.Time(microseconds(200), world.plan.write_takes / 8);
  world.time.In(
      takes, [this, &world, &process, attempt, life = process.incarnation(), session = session_] {
        if (process.incarnation() != life) return;
        if (HasLedger() && session != world.ledger.session()) {
          return process.Later(Process::kOutput, world.NetDelay(),
                               [this, attempt] { OnBroken(attempt); });
        }
        if (world.plan.by_position && HasLedger()) {
          auto asked = consumer::ByPartition(asked_->ids());
          auto rows = world.ledger.positions().Read(asked.parts);
          return process.Later(Process::kOutput, world.NetDelay(),
                               [this, attempt, session, asked = std::move(asked),
                                rows = std::move(rows)] { OnRows(attempt, session, asked, rows); });
        }
        const auto entries = world.ledger.Lookup(asked_->ids());
        process.Later(Process::kOutput, world.NetDelay(),
                      [this, attempt, session, entries] { OnFound(attempt, session, entries); });
      });
}

void SimWriter::OnFound(int attempt, std::uint64_t session,
                        const std::vector<std::optional<LedgerEntry>>& entries) {
  if (attempt != attempt_) return;
  CheckUse(session);
  const auto lookup = std::exchange(lookup_, nullptr);
  world_.Count("lookups", static_cast<int>(entries.size()));
  const auto all = asked_->Answer(*lookup, entries);
  worker_.core().OnLookedUp(*lookup, all, worker_.process().now());
  worker_.Act();
  Next();
}

void SimWriter::OnRows(int attempt, std::uint64_t session, const consumer::PositionLookup& asked,
                       const PositionTable::Rows& rows) {
  if (attempt != attempt_) return;
  if (session != world_.ledger.session()) return OnBroken(attempt);
  output_.OnAssignment(lookup_->epoch);
  const auto entries = output_.AnswerFrom(asked_->ids(), asked, rows);
  if (entries) return OnFound(attempt, session, *entries);
  if (entries.error().fatal) return End(entries.error().error);
  world_.Count("look-ups put off");
  asked_->LeaveOut(entries.error().later);
  Ask();
}

void SimWriter::AskAgainLater() {
  worker_.process().Later(Process::kOutput, backoff_, [this] { Ask(); });
  backoff_ = std::min<Nanos>(backoff_ * 2, kMaxBackoff);
}

// It was answered: has it said what it had to say? What is older than half of ledger.keep it does
// not look for.
void SimWriter::CheckUse(std::uint64_t session) {
  if (!world_.plan.Has(Fault::kFailovers) || world_.plan.keep) return;
  if (session != world_.ledger.session()) return;
  const Process& process = worker_.process();
  world_.checks.OnUsed({process.index, process.incarnation(), 0, world_.time.now()});
}

// --- writes ------------------------------------------------------------------------------------

void SimWriter::Begin() {
  std::vector<WriteOutcome> outcomes(batch_->request.items.size());
  consumer::BatchRows rows(ShapesOfTables(), "");
  (void)rows.Fill(batch_->request.items, outcomes);
  items_.assign(rows.size(), {});
  for (std::size_t record = 0; record < rows.size(); ++record) {
    items_[rows.index(record)] = ItemOf(world_, rows, record);
  }
  world_.checks.OnBatch(batch_->request);
  retry_.Begin(batch_->id, batch_->answered, batch_->request.items, worker_.process().now().boot);
  Go();
}

void SimWriter::Go() {
  if (worker_.process().now().boot >= batch_->until) retry_.Expire();
  const consumer::WriteRetry::Step step = retry_.Next();
  refuses_all_ = !step.reason.empty();
  switch (step.kind) {
    case consumer::WriteRetry::Step::Kind::kWrite:
      if (step.reconnect) session_ = 0;
      return Attempt(step.items, step.apart && HasLedger());
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

// For a while at a time the table is broken, or somebody sits on it, or it is slow, or full.
Mood SimWriter::MoodNow(World& world) {
  if (!world.FaultsOn()) return Mood::kUsual;
  const auto moment = static_cast<std::uint64_t>(world.time.now() / (world.plan.outage / 4));
  const std::uint64_t hash = (world.plan.seed * 31 + moment) * 0x9e3779b97f4a7c15ULL >> 20;
  auto left = static_cast<int>(hash % 1000);
  for (std::size_t mood = 0; mood < world.plan.moods.size(); ++mood) {
    left -= world.plan.moods[mood];
    if (left < 0) return static_cast<Mood>(mood);
  }
  return Mood::kUsual;
}

Mood SimWriter::StruckMood(World& world) {
  const Mood mood = MoodNow(world);
  if (mood == Mood::kRefusesAll) world.Strike(Fault::kTableRefuses);
  if (mood == Mood::kLocked) world.Strike(Fault::kTableLocked);
  if (mood == Mood::kSlow) world.Strike(Fault::kTableSlow);
  if (mood == Mood::kFull) world.Strike(Fault::kTableFull);
  return mood;
}

// Lines: what is refused has none, and what is behind it in its chain waits.
std::vector<WriteOutcome> SimWriter::Append(const std::vector<Item>& items) {
  std::vector<WriteOutcome> outcomes;
  std::set<std::uint64_t> held;
  for (const Item& item : items) {
    const bool behind = held.contains(item.row.chain);
    outcomes.push_back({.result = behind                 ? WriteResult::kNotWritten
                                  : !item.row.makes_rows ? WriteResult::kNoOutput
                                  : item.row.refused > 0 ? WriteResult::kBadRecord
                                                         : WriteResult::kCommitted});
    if (!behind && item.row.makes_rows && item.row.refused > 0 && item.row.chain != 0)
      held.insert(item.row.chain);
  }
  return outcomes;
}

// One transaction, or lines that are appended.
Ledger::Outcomes SimWriter::Happen(World& world, const std::vector<Item>& items, By by,
                                   PositionWrite* positions) {
  by.at = world.time.now();
  Ledger::Outcomes outcomes;
  if (world.plan.flow.finality == Finality::kLedger) {
    const Mood mood = StruckMood(world);
    Ledger& ledger = world.ledger;
    outcomes = positions == nullptr ? ledger.Write(Rows(items), mood, by)
                                    : ledger.Write(Rows(items), mood, by, *positions);
  } else {
    outcomes = Append(items);
  }
  if (!outcomes) {
    world.Count(kFailed[static_cast<std::size_t>(outcomes.error())]);
    return outcomes;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const WriteResult result = (*outcomes)[i].result;
    if (result == WriteResult::kNoOutput && items[i].row.letter) {
      world.checks.OnLetterDone(items[i].row.id);
    } else if (result == WriteResult::kNoOutput) {
      world.checks.OnNoOutput(items[i].row.id, items[i].source);
    }
    if (result != WriteResult::kCommitted) continue;
    by.epoch = items[i].epoch;
    if ((*outcomes)[i].lost_to_newer) world.Count("changes lost to newer ones");
    world.checks.OnEffect(items[i].row.id, items[i].source, by, (*outcomes)[i].lost_to_newer);
  }
  world.Note("w{} transaction of {} records is committed", by.worker, items.size());
  return outcomes;
}

// The worker may stall before it sends; once sent, the transaction goes on without it.
void SimWriter::Attempt(std::vector<std::size_t> places, bool apart) {
  const int attempt = ++attempt_;
  worker_.process().Later(Process::kOutput, world_.HostDelay(),
                          [this, attempt, apart, places = std::move(places)] {
                            Connected(attempt, [this, attempt, apart, places] {
                              apart ? Search(attempt, places) : Send(attempt, places);
                            });
                          });
}

void SimWriter::Send(int attempt, const std::vector<std::size_t>& places) {
  if (attempt != attempt_) return;
  if (worker_.process().now().boot >= batch_->until) return Go();  // it was stalled
  std::vector<Item> part;
  for (const std::size_t place : places) part.push_back(items_[place]);
  World& world = world_;
  Process& process = worker_.process();
  const bool ledger = HasLedger();
  const bool trouble = world.Strikes(Fault::kUnanswered, world.plan.output_faults);
  const bool late = trouble && ledger && world.random.Chance(300);
  const bool never = trouble && !late && (!ledger || world.random.Chance(400));
  const Nanos limit = world.plan.write_takes + Millis(200);
  if (process.CutOff()) {
    return process.Later(Process::kOutput, limit, [this, attempt] { OnNoAnswer(attempt); });
  }
  std::shared_ptr<PositionWrite> positions;
  if (ledger && world.plan.by_position) {
    auto made = output_.OnSending(ItemsAt(places));
    if (!made) return OnRefusal(made.error());
    positions = std::move(*made);
  }
  const Nanos takes = late ? world.random.Time(limit, world.plan.LongestWrite())
                           : world.random.Time(microseconds(300), world.plan.write_takes);
  if (ledger) world.ledger.Send(Rows(part));
  world.time.In(takes, [this, &world, &process, life = process.incarnation(), attempt, never, late,
                        trouble, ledger, places, session = session_, items = std::move(part),
                        positions = std::move(positions)] {
    const bool broken = ledger && session != world.ledger.session();
    const bool conflict = !never && !late && !broken && ledger &&
                          world.Strikes(Fault::kConflicts, world.plan.serializations);
    if ((never || conflict || broken) && ledger) world.ledger.Forget(Rows(items));
    const bool listens = process.incarnation() == life;
    if (never) return;
    if (broken) {
      if (!listens) return;
      process.Later(Process::kOutput, world.NetDelay(), [this, attempt] { OnBroken(attempt); });
      return;
    }
    if (conflict) {
      world.Count("transactions not serializable");
      if (!listens) return;
      process.Later(Process::kOutput, world.NetDelay(), [this, attempt] { OnConflict(attempt); });
      return;
    }
    const auto outcomes = Happen(world, items, {process.index, life, 0, Nanos(0)}, positions.get());
    if (trouble || !listens) return;
    process.Later(Process::kOutput, world.NetDelay(),
                  [this, attempt, session, places, outcomes, positions] {
                    OnAnswer(attempt, session, places, outcomes, positions.get());
                  });
  });
  if (!trouble) return;
  process.Later(Process::kOutput, limit, [this, attempt] { OnNoAnswer(attempt); });
}

void SimWriter::OnAnswer(int attempt, std::uint64_t session, const std::vector<std::size_t>& places,
                         const Ledger::Outcomes& outcomes, const PositionWrite* positions) {
  if (attempt != attempt_ || batch_ == nullptr) return;
  if (!outcomes) return Fail({.failure = outcomes.error()});
  if (HasLedger() && !Remember(places, *outcomes, positions)) return;
  CheckUse(session);
  retry_.OnWritten(*outcomes);
  Go();
}

std::vector<consumer::WriteItem> SimWriter::ItemsAt(const std::vector<std::size_t>& places) const {
  std::vector<consumer::WriteItem> items;
  for (const std::size_t place : places) items.push_back(batch_->request.items[place]);
  return items;
}

bool SimWriter::Remember(const std::vector<std::size_t>& places,
                         const std::vector<WriteOutcome>& outcomes,
                         const PositionWrite* positions) {
  const std::vector<consumer::WriteItem> items = ItemsAt(places);
  if (positions == nullptr) {
    output_.Remember(items, outcomes);
  } else if (const auto same = output_.OnCommitted(*positions); !same) {
    OnRefusal(same.error());
    return false;
  }
  Acknowledge(items, outcomes);
  return true;
}

void SimWriter::Acknowledge(const std::vector<consumer::WriteItem>& items,
                            const std::vector<WriteOutcome>& outcomes) {
  if (!world_.plan.Has(Fault::kFailovers)) return;
  const Process& process = worker_.process();
  const By me{process.index, process.incarnation(), 0, world_.time.now()};
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool effect = outcomes[i].result == WriteResult::kCommitted ||
                        (consumer::EffectIsWritten(outcomes[i].result) &&
                         (world_.plan.by_position || outcomes[i].stands != locking::Token()));
    const bool none = outcomes[i].result == WriteResult::kNoOutput && !world_.plan.by_position;
    if (!effect || none) continue;
    world_.checks.OnAcknowledged(std::string(items[i].record_id), me);
  }
}

// The output itself does not write, or does not tell what it wrote.
void SimWriter::OnRefusal(const consumer::OutputError& error) {
  if (error.fatal) return End(error.error);
  ++attempt_;
  if (error.later.empty()) return Fail({});
  world_.Count("parts left out");
  retry_.OnFailed(error);
  Go();
}

void SimWriter::OnConflict(int attempt) {
  if (attempt != attempt_) return;
  ++attempt_;
  Fail({.retry_at_once = true});
}

void SimWriter::OnNoAnswer(int attempt) {
  if (attempt != attempt_) return;
  ++attempt_;
  const bool told = world_.random.Chance(500);
  const auto failure =
      told ? consumer::WriteFailure::kUnavailable : consumer::WriteFailure::kClientTimeout;
  Fail({.failure = failure, .unanswered = true});
}

// The connection is closed where it may be to blame.
void SimWriter::Fail(consumer::OutputError error) {
  using enum consumer::WriteFailure;
  const bool broken = error.failure == kUnavailable || error.failure == kClientTimeout;
  if (!error.retry_at_once && broken) session_ = 0;
  error.error.what = "failed";
  retry_.OnFailed(error);
  Go();
}

}  // namespace fencepost::simulator
