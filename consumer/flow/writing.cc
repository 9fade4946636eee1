// The way of a record through the output: gathered into a transaction, and written. It ends in
// finish.cc.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "consumer/flow/ports/retry.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

using locking::Phase;

namespace {

// A record that a constraint between rows refuses is tried again for so long, and so often: the
// database may be away meanwhile.
constexpr std::chrono::minutes kMostRefused{1};
constexpr int kLeastRefusals = 5;
constexpr std::chrono::seconds kBetweenRefusals{10};  // that are told

std::string_view RefusalClass(DeadLetterReason reason) {
  switch (reason) {
    case DeadLetterReason::kOutput:
      return "output";
    case DeadLetterReason::kTimeout:
      return "timeout";
    default:
      return "bad_record";
  }
}

}  // namespace

// Group commit: the first transaction takes what waits; a further one goes out only when it is
// full. A Kafka transaction is alone, and waits for more until it is full, or its oldest record has
// waited for `linger`, or no more can come.
bool Flow::WriteDue(Now now) const {
  const bool transaction = options_.finality == Finality::kTransaction;
  if (ready_.empty()) return transaction && offsets_due_ && writes_out_ == 0;
  if (ready_.size() >= options_.write_batch) return writes_out_ < options_.writes_out;
  if (writes_out_ > 0) return false;
  return options_.linger == Millis(0) || drain_ || !taking_ || paused_ ||
         backpressure_.Room() == 0 || now.boot - ready_.front().at >= options_.linger;
}

void Flow::SendWrites(Now now) {
  while (WriteDue(now)) {
    auto batch = std::make_unique<WriteBatch>();
    FillBatch(*batch, now);
    if (options_.finality == Finality::kTransaction) FillOffsets(*batch, now);
    if (batch->records.empty() && batch->moves.empty()) continue;
    batch->id = next_write_++;
    ++writes_out_;
    actions_.writes.push_back(std::move(batch));
  }
}

void Flow::FillBatch(WriteBatch& batch, Now now) {
  const bool ends = RowsArePruned() && !Planted("late_batch_is_written") &&
                    !Planted("stale_assignment_is_written");
  while (!ready_.empty() && batch.records.size() < options_.write_batch) {
    const QueueEntry entry = ready_.front();
    ready_.pop_front();
    InFlight& in = *entry.record;
    if (in.stage() != Stage::kReady || entry.Stale()) continue;
    if (!locks_.LeaseIsValid(in, now)) {
      locks_.LeaveInvalid(in, now);
      continue;
    }
    const bool follows = in.chain_before == nullptr ||
                         (Handled(*in.chain_before) && in.chain_before->stage() != Stage::kReady);
    const bool ours = OwnershipIsFresh(*in.assignment, now);
    if (!ours) Confirm(*in.assignment, now);
    if (!ours || !follows) {  // the one before it was, and is not any more
      in.BecomeHandled();
      continue;
    }
    if (ends)
      batch.until =
          std::min(batch.until, *in.assignment->confirmed + *options_.ledger_row_lifetime);
    in.BecomeWriting();
    ++in.assignment->writing;
    locks_.SetPhase(in, Phase::kWriting);
    if (Planted("done_before_the_transaction") && in.unit != nullptr) {
      core_->MarkDone({.name = in.unit->name(),
                       .token = TokenOf(in),
                       .crc = in.identity.crc,
                       .remember = options_.remember_done},
                      now);
    }
    batch.records.push_back(&in);
    batch.request.items.push_back(ItemOf(in));
  }
  batch.answered = answered_;
}

WriteItem Flow::ItemOf(const InFlight& in) const {
  return {.record = &in.record,
          .where = in.where,
          .cluster = identifier_->cluster_id(),
          .origin = in.identity.origin ? &*in.identity.origin : nullptr,
          .record_id = in.identity.id,
          .whole_id = in.identity.whole,
          .in_place = in.identity.in_place,
          .start = in.assignment->start,
          .token = TokenOf(in),
          .crc = in.identity.crc,
          .values = in.handled ? &in.values : nullptr,
          .dead_letter = in.letter.get(),
          .chain = in.chain == nullptr ? 0 : in.chain->id,
          .trace = in.trace ? in.trace->context() : TraceContext()};
}

// How far each partition is finished once this transaction is committed. Within a partition its
// records are a prefix of what is unfinished (the chain is the partition).
void Flow::FillOffsets(WriteBatch& batch, Now now) {
  offsets_due_ = false;
  for (const auto& [index, partition] : partitions_) {
    const Offset next = partition->NextAfterWrites();
    const bool failed = partition->failed_due && next == partition->committing;
    if (next <= partition->committing && !failed) continue;
    partition->committing = next;
    batch.request.epoch = partition->epoch;
    batch.request.offsets.push_back(
        {partition->where, next, partition->TakeFailed(next, now.boot)});
    batch.moves.push_back({index, partition->epoch, next, batch.request.offsets.back().failed});
  }
  for (const InFlight* in : batch.records) {
    FENCEPOST_CHECK(in->record.offset < in->assignment->committing,
                    "a transaction holds a record that its offsets do not pass");
  }
}

void Flow::OnWritten(std::unique_ptr<WriteBatch> batch, const std::vector<WriteOutcome>& outcomes,
                     Now now) {
  FENCEPOST_CHECK(outcomes.size() == OutcomesOf(batch->request),
                  "one outcome a record, and one of offsets alone");
  tracer_.At(now);
  tracer_.OnWritten(*batch, outcomes);
  --writes_out_;
  answered_ = batch->id;
  ReportMoved(*batch, outcomes);
  std::vector<InFlight*> again;
  for (std::size_t i = 0; i < batch->records.size(); ++i) {
    InFlight& in = *batch->records[i];
    FENCEPOST_CHECK(in.stage() == Stage::kWriting,
                    "an outcome of a record that is not being written");
    Assignment& partition = *in.assignment;
    --partition.writing;
    if (outcomes[i].in_doubt) in.in_doubt_until = now.boot + options_.transaction_lasts;
    if (partition.gone && !EffectIsWritten(outcomes[i].result)) {
      tracer_.End(in, "given_back");
      Finish(in, now);  // the next owner's
    } else if (outcomes[i].result == WriteResult::kNotWritten) {
      again.push_back(&in);
    } else {
      OnOutcome(in, outcomes[i], batch->began, now);
    }
    Advance(now);
  }
  for (InFlight* in : again) WriteAgain(*in, now);
  for (InFlight* in : again) work_.Push(in);
  Advance(now);
  observer_->OnProgress(now.wall.time_since_epoch());
  Sweep();
  Step(now);
}

// The offsets that a transaction moved: of the partitions of which nothing was left out. Of an
// aborted one no record is written.
void Flow::ReportMoved(const WriteBatch& batch, const std::vector<WriteOutcome>& outcomes) {
  if (batch.moves.empty()) return;
  const bool committed = std::ranges::any_of(
      outcomes, [](const WriteOutcome& outcome) { return EffectIsWritten(outcome.result); });
  std::set<PartitionIndex> behind;
  for (std::size_t i = 0; i < batch.records.size(); ++i) {
    if (!EffectIsWritten(outcomes[i].result)) behind.insert(batch.records[i]->record.partition);
  }
  for (const PartitionOffset& move : batch.moves) {
    Assignment* const partition = Find(move.partition, move.epoch);
    if (partition == nullptr) continue;
    const bool moved = committed && !behind.contains(move.partition);
    partition->OnCommitted(move.next, moved ? std::optional(batch.began) : std::nullopt);
  }
}

// It keeps its lease and its place in the chain: behind a record that the output refused it waits
// for what becomes of that one. Without a lease, or when a Kafka transaction was aborted (its
// leases must not be held while its records wait for others'), it is locked again.
void Flow::WriteAgain(InFlight& in, Now now) {
  const bool leased = PassedLock(in) || in.without_id;
  if (options_.finality != Finality::kTransaction && leased && NotLeasedBefore(in) == nullptr) {
    ++in.ticket;
    in.BecomeHandled();
    locks_.SetPhase(in, Phase::kWaiting);
    return work_.Push(&in);
  }
  locks_.GiveBackFrom(in, now);
}

// What it breaks may be mended by a record of another key, which comes later or is refused as well.
// It keeps its place in its chain, and is written again after waits like those of the handler. In a
// chain of several keys that record would wait behind it, and so would all others.
bool Flow::WriteAgainLater(InFlight& in, const std::string& why, Now now) {
  const RetryOptions& retry = tuning_.retry;
  const bool of_one_key = in.chain == nullptr || options_.order == Order::kKey;
  if (!of_one_key || in.letter != nullptr) return false;
  if (in.refusals == 0) in.refused_since = now.boot;
  const Nanos most = std::min<Nanos>(retry.give_up_after, kMostRefused);
  const int least = most > Nanos(0) ? kLeastRefusals : 0;
  if (now.boot - in.refused_since >= most && in.refusals >= least) return false;
  TellRefusal(in, why, now);
  observer_->OnRetry(RetryStage::kOutput);
  if (in.assignment->revoking) locks_.GiveBackFrom(in, now);  // the next owner tries again
  if (in.assignment->revoking || !KeepsItsTurn(in, now)) return true;
  ++in.ticket;
  in.BecomeRetrying();
  locks_.SetPhase(in, Phase::kWaiting);
  timers_.push(EntryOf(in, now.boot + RetryBackoff(retry, in.refusals, random_())));
  return true;
}

// In the log a refusal every ten seconds, whichever record it is of; for `explain` in the metadata
// of the group's offset, where what its failed handler calls have come to stays.
void Flow::TellRefusal(InFlight& in, const std::string& why, Now now) {
  ++in.refusals;
  in.refused_why = why;
  const int failed_calls = in.attempts - (in.handled ? 1 : 0);
  in.assignment->OnFailed({.offset = in.record.offset,
                           .attempts = in.failing.failures == 0 ? 0 : failed_calls,
                           .alone = std::chrono::duration_cast<Millis>(in.failing.alone),
                           .last = std::chrono::duration_cast<Millis>(now.wall.time_since_epoch()),
                           .why = kRefusedForOthers});
  if (now.boot < next_refusal_note_) return;
  next_refusal_note_ = now.boot + kBetweenRefusals;
  Note(locking::Severity::kWarn, "row_refused",
       why + "; it is written again, since another record may make room for it", in);
}

void Flow::OnOutcome(InFlight& in, const WriteOutcome& outcome, Instant began, Now now) {
  if (in.letter_out) return Finish(in, now);  // refused: its offset is a hole, which does no harm
  UpdateDeadLetterLimiter(in, outcome);
  switch (outcome.result) {
    case WriteResult::kCommitted:
      if (in.letter != nullptr) return OnDeadLetterPublished(in, now);
      if (outcome.lost_to_newer) OnRowLost(in, now);
      return OnEffect(in, outcome, began, now);
    case WriteResult::kNoOutput:
      return OnNoOutput(in, now);
    case WriteResult::kFenced:
      observer_->OnOutputFencing();
      Note(locking::Severity::kWarn, "fenced",
           "the output refused the write: a later holder of the lock had written the effect", in);
      break;
    case WriteResult::kIdConflict:
      return OnConflict(in, outcome.detail, outcome.shown, now);
    case WriteResult::kBadRecord:
      if (outcome.may_pass && WriteAgainLater(in, outcome.shown, now)) return;
      return DeadLetterOrStop(in,
                              {.reason = outcome.reason,
                               .error_class = std::string(RefusalClass(outcome.reason)),
                               .text = outcome.detail,
                               .shown = outcome.shown,
                               .cause = LetterCause::kOutput},
                              now);
    default:
      break;
  }
  OnSkipped(in, DedupeSource::kLedger, now);
}

void Flow::OnRowLost(const InFlight& in, Now now) {
  observer_->OnRowLost();
  if (now.boot < next_row_lost_note_) return;
  next_row_lost_note_ = now.boot + std::chrono::minutes(1);
  Note(locking::Severity::kWarn, "row_lost",
       "its change had no effect: a newer one, with a higher fence_by, had been written", in);
}

// What the outcome tells about bad records (DeadLetterLimiter). What is deleted, or becomes no row,
// tells nothing about those that become one.
void Flow::UpdateDeadLetterLimiter(const InFlight& in, const WriteOutcome& outcome) {
  if (!EffectIsWritten(outcome.result) || in.letter != nullptr) return;
  dead_letter_limiter_.Disprove(LetterCause::kUnread);
  dead_letter_limiter_.Disprove(LetterCause::kIdentity);
  if (outcome.result != WriteResult::kNoOutput)
    dead_letter_limiter_.Disprove(LetterCause::kConflict);
  const bool written = outcome.result == WriteResult::kCommitted;
  const bool rows = in.handled ? !in.values.empty() : written || in.record.value.has_value();
  if (!rows || !outcome.took_rows) return;
  dead_letter_limiter_.Disprove(LetterCause::kOutput);
  if (in.handled) dead_letter_limiter_.Disprove(LetterCause::kHandler);
}

void Flow::OnEffect(InFlight& in, const WriteOutcome& outcome, Instant began, Now now) {
  if (!traits_.write_decides && locks_.EndedBefore(in, began)) {
    observer_->OnInvariant(locking::Invariant::kLeaseAfterLoss);
    Note(locking::Severity::kError, "invariant_violated",
         "lease_after_loss: its effect was written after its lease had ended; another may have "
         "written it too",
         in);
  }
  const bool left = HasLedger() && !in.unit->shared();
  if (left && in.unit->took_over()) observer_->OnTakeover();
  if (traits_.write_decides && locks_.EndedBefore(in, now.boot)) {
    observer_->OnCompletedAfterExpiry();
    in.Tell("lease_lost", "it ended before its effect was known");
  }
  if (in.record.timestamp) {
    observer_->OnEndToEnd(now.wall.time_since_epoch() - *in.record.timestamp,
                          tracer_.Keeps(in) ? in.trace->context() : TraceContext());
  }
  Tell(ProcessedResult::kDone, in, outcome.lost_to_newer);
  locks_.MarkDone(in, now);
  Finish(in, now);
}

// A record of other content may come under its id, and waits neither for a lease that was left
// behind nor is one of the id DONE. A position comes again as the same record only.
void Flow::OnNoOutput(InFlight& in, Now now) {
  if (HasLedger() && options_.identity.ByPosition()) locks_.MarkDone(in, now);
  if (Planted("filtered_record_is_marked")) locks_.MarkDone(in, now);
  Tell(ProcessedResult::kNoOutput, in);
  Finish(in, now);
}

// The effect was written before, by another record with this id or an earlier try of this one.
void Flow::OnSkipped(InFlight& in, DedupeSource source, Now now) {
  if (HasLedger()) locks_.MarkDone(in, now);
  Skip(in, source, now);
}

void Flow::Skip(InFlight& in, DedupeSource source, Now now, bool conflict) {
  dead_letter_limiter_.Disprove(LetterCause::kUnread);
  dead_letter_limiter_.Disprove(LetterCause::kIdentity);
  if (options_.identity.ByPosition() && !in.identity.in_place) {
    Note(locking::Severity::kWarn, "replay_skipped",
         fmt::format("its original is done: it took effect, or was replayed before{}",
                     options_.ledger_row_lifetime
                         ? ", or ledger.keep has passed since it became a dead letter (then replay "
                           "it with --as-new-id)"
                         : ""),
         in);
  }
  observer_->OnDedupeSkip(source);
  Tell(ProcessedResult::kSkipped, in, conflict);
  Finish(in, now);
}

}  // namespace fencepost::consumer
