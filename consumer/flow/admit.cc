// The way of a record begins: delivered, identified, queued in its order chain. It goes on in
// flow.cc (Do). A filtered one is passed by.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "consumer/record/dead_letter.h"
#include "consumer/record/position_id.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

void Flow::OnRecords(std::vector<Record> records, Now now) {
  tracer_.At(now);
  std::size_t admitted = 0;
  for (Record& record : records) {
    Assignment* partition = Find(record.partition, record.epoch);
    if (partition == nullptr || partition->revoking) continue;  // of an assignment that is over
    if (record.offset < partition->position) continue;          // delivered before
    ++admitted;
    record.filtered ? PassBy(*partition, record, now) : Admit(*partition, std::move(record), now);
  }
  observer_->OnConsumed(admitted);
  Step(now);
}

// It is finished, without lock, handler or output, and takes no room.
void Flow::PassBy(Assignment& partition, const Record& record, Now now) {
  partition.PassFiltered(record);
  dead_letter_limiter_.Disprove(LetterCause::kUnread);
  observer_->OnProcessed(ProcessedResult::kFiltered,
                         {.record = &record, .where = &partition.where, .record_id = {}});
  observer_->OnProgress(now.wall.time_since_epoch());
  AdvanceWatermark(partition, now);
}

void Flow::Admit(Assignment& partition, Record record, Now now) {
  FENCEPOST_CHECK(identifier_ != nullptr, "records before the cluster id");
  InFlight& in = *NewInFlight();
  in.assignment = &partition;
  in.where = &partition.where;
  in.record = std::move(record);
  tracer_.Begin(in);
  in.BecomeQueued();
  const auto failed = partition.failed.find(in.record.offset);
  if (failed != partition.failed.end() && !Planted("failures_are_forgotten")) {
    TakeOver(in, failed->second, now);
  }
  partition.Deliver(in, now.boot);
  backpressure_.OnDelivered(partition);
  UpdateBytes(in);
  JoinChain(in);
  auto identified = identifier_->Identify(in.record, *in.where, in.identity);
  if (identified && IsOfAnotherLog(in)) {
    identified = tl::unexpected(fmt::format(
        "no record id: the header {} names a position of another record, or one that its log has "
        "not come to: the topic was made again; `dlq replay --as-new-id` makes it a new record",
        dead_letter_header::kRecordId));
  }
  work_.Push(&in);
  if (!identified) {
    const bool unread = !in.record.problem.empty();
    in.without_id = true;
    in.identity.id.clear();
    DeadLetterOrStop(in,
                     {.error_class = "bad_record",
                      .text = identified.error(),
                      .shown = identified.error(),
                      .cause = unread ? LetterCause::kUnread : LetterCause::kIdentity},
                     now);
  }
  Advance(now);
}

// A replay by position whose original would come after it, or is beyond the end that is known, or
// is another record that is in flight: that one would be taken for done.
bool Flow::IsOfAnotherLog(const InFlight& in) const {
  if (in.identity.in_place || !options_.identity.ByPosition()) return false;
  const auto id = ParsePositionId(in.identity.id);
  if (!id || id->cluster != identifier_->cluster_id()) return false;
  return std::ranges::any_of(partitions_, [&](const auto& entry) {
    const Assignment& partition = *entry.second;
    if (partition.where.topic != id->topic || partition.where.partition != id->partition) {
      return false;
    }
    const auto slot = std::ranges::find(partition.slots, id->offset, &Assignment::Slot::offset);
    if (slot != partition.slots.end() && slot->record != nullptr && slot->record != &in) {
      const Record& there = slot->record->record;
      return there.key != in.record.key || there.value != in.record.value;
    }
    if (&partition == in.assignment) return id->offset >= in.record.offset;
    return partition.goal && id->offset >= std::max(partition.end, partition.position);
  });
}

// Its attempts and its time go on from those of earlier owners. Of the time since its last failure
// counts what it may have waited for its next call, and nothing where the clock of then was ahead.
// It is given up only after it has failed by itself here, too: a service that is away when a worker
// starts costs no more records than at any other time.
void Flow::TakeOver(InFlight& in, const FailedRecord& failed, Now now) {
  if (failed.attempts == 0) return;  // no call has reached the receiver
  const RetryOptions& retry = tuning_.retry;
  const Millis most = retry.max + options_.handler_timeout;
  const auto wall = std::chrono::duration_cast<Millis>(now.wall.time_since_epoch());
  const Nanos alone = std::min<Nanos>(failed.alone, retry.give_up_after - Nanos(1));
  in.attempts = in.failing.failures = failed.attempts;
  in.failing.at = now.boot - std::clamp(wall - failed.last, Millis(0), most);
  in.failing.wait = most;
  in.failing.alone = std::max(alone, Nanos(0));
}

void Flow::JoinChain(InFlight& in) {
  switch (options_.order) {
    case Order::kPartition:
      return in.assignment->chain.Join(in);
    case Order::kKey:
      if (in.record.key) chains_.Of(in.record.partition, *in.record.key).Join(in);
      return;
    case Order::kNone:
      return;
  }
}

}  // namespace fencepost::consumer
