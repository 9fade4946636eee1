#include "tests/model/simulator/sim_transactions.h"

#include <algorithm>
#include <utility>

#include "locking/base/check.h"
#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using consumer::WriteOutcome;
using consumer::WriteResult;

constexpr Millis kFirstBackoff{50};
constexpr Millis kMaxBackoff{2000};
constexpr Millis kAskAgain{300};

}  // namespace

void SimTransactions::Write(std::unique_ptr<consumer::WriteBatch> batch) {
  FENCEPOST_CHECK(batch_ == nullptr, "one transaction at a time");
  batch_ = std::move(batch);
  backoff_ = kFirstBackoff;
  items_.clear();
  for (const consumer::WriteItem& item : batch_->request.items) {
    Produced& produced = items_.emplace_back();
    produced.id = item.record_id;
    produced.source = consumer::SourceText(*item.where, item.record->offset);
    produced.partition = item.record->partition;
    produced.offset = item.record->offset;
    produced.letter = item.dead_letter != nullptr;
    produced.no_output = item.values != nullptr && item.values->empty();
  }
  world_.checks.OnBatch(batch_->request);
  if (items_.empty()) world_.Count("offsets alone");
  Attempt();
}

// Produces: what the producer itself refuses is known before anything is committed.
void SimTransactions::Attempt() {
  const std::uint64_t attempt = ++attempt_;
  const Nanos takes = world_.random.Time(microseconds(300), world_.plan.write_takes);
  worker_.process().Later(Process::kOutput, takes, [this, attempt] {
    if (attempt != attempt_) return;
    std::vector<WriteOutcome> outcomes(items_.size(),
                                       {.result = WriteResult::kNotWritten, .detail = {}});
    bool refused = false;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].letter || items_[i].no_output || world_.Refuses(items_[i].source) == 0)
        continue;
      outcomes[i] = {WriteResult::kBadRecord, "refused", consumer::DeadLetterReason::kOutput};
      refused = true;
    }
    refused ? Answer(outcomes) : SendOffsets(attempt);
  });
}

void SimTransactions::SendOffsets(std::uint64_t attempt) {
  Process& process = worker_.process();
  world_.time.In(
      world_.NetDelay(), [this, &world = world_, &process, attempt, life = process.incarnation(),
                          epoch = batch_->request.epoch, moves = batch_->moves] {
        const auto state =
            world.broker.AddOffsets({process.index, life, attempt}, static_cast<int>(epoch), moves);
        if (process.incarnation() != life) return;
        process.Later(Process::kOutput, world.NetDelay(),
                      [this, attempt, state] { OnOffsets(attempt, state); });
      });
}

void SimTransactions::OnOffsets(std::uint64_t attempt, TransactionState state) {
  if (attempt != attempt_) return;
  if (state == TransactionState::kFenced) return Fenced();
  if (state == TransactionState::kOpen) return Commit(attempt);
  world_.Count("transactions of a group that has gone on");
  NotWritten();
}

// Asked until it is answered: a commit is done once, however often it is asked for.
void SimTransactions::Commit(std::uint64_t attempt) {
  if (attempt != attempt_) return;
  Process& process = worker_.process();
  const bool vanishes = world_.Strikes(Fault::kUnanswered, world_.plan.output_faults);
  const bool silent = world_.Strikes(Fault::kUnanswered, world_.plan.output_faults);
  world_.time.In(world_.NetDelay(), [this, &world = world_, &process, attempt, vanishes, silent,
                                     life = process.incarnation(), items = items_] {
    if (vanishes) return;
    const auto state = world.broker.EndTransaction({process.index, life, attempt}, items);
    if (silent || process.incarnation() != life) return;
    process.Later(Process::kOutput, world.NetDelay(),
                  [this, attempt, state] { OnEnded(attempt, state); });
  });
  process.Later(Process::kOutput, kAskAgain, [this, attempt] { Commit(attempt); });
}

void SimTransactions::OnEnded(std::uint64_t attempt, TransactionState state) {
  if (attempt != attempt_) return;
  ++attempt_;
  if (state == TransactionState::kFenced) return Fenced();
  if (state == TransactionState::kCommitted) {
    world_.Count("transactions");
    std::vector<WriteOutcome> outcomes(consumer::OutcomesOf(batch_->request));
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].no_output) outcomes[i] = {.result = WriteResult::kNoOutput, .took_rows = false};
    }
    return Answer(outcomes);
  }
  world_.Count("transactions aborted");
  if (world_.random.Chance(500)) return NotWritten();
  worker_.process().Later(Process::kOutput, backoff_, [this] { Attempt(); });
  backoff_ = std::min<Nanos>(backoff_ * 2, kMaxBackoff);
}

void SimTransactions::NotWritten() {
  Answer(std::vector<WriteOutcome>(consumer::OutcomesOf(batch_->request),
                                   {.result = WriteResult::kNotWritten, .detail = {}}));
}

void SimTransactions::Fenced() {
  world_.Count("producers fenced");
  Process& process = worker_.process();
  world_.time.In(Nanos(0), [&world = world_, index = process.index, life = process.incarnation()] {
    world.Bury(index, life);
  });
}

void SimTransactions::Answer(const std::vector<WriteOutcome>& outcomes) {
  ++attempt_;
  worker_.core().OnWritten(std::move(batch_), outcomes, worker_.process().now());
  worker_.Act();
}

}  // namespace fencepost::simulator
