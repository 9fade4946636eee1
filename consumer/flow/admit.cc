// The way of a record begins: delivered, identified, queued in its order chain. It goes on in
// flow.cc (Do).
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "locking/base/check.h"

namespace fencepost::consumer {

void Flow::OnRecords(std::vector<Record> records, Now now) {
  std::size_t admitted = 0;
  for (Record& record : records) {
    Assignment* partition = Find(record.partition, record.epoch);
    if (partition == nullptr || partition->revoking) continue;  // of an assignment that is over
    if (record.offset < partition->position) continue;          // delivered before
    Admit(*partition, std::move(record), now);
    ++admitted;
  }
  observer_->OnConsumed(admitted);
  Step(now);
}

void Flow::Admit(Assignment& partition, Record record, Now now) {
  FENCEPOST_CHECK(identifier_ != nullptr, "records before the cluster id");
  InFlight& in = *NewInFlight();
  in.assignment = &partition;
  in.where = &partition.where;
  in.record = std::move(record);
  in.BecomeQueued();
  partition.Deliver(in, now.boot);
  backpressure_.OnDelivered(partition);
  UpdateBytes(in);
  JoinChain(in);
  const auto identified = identifier_->Identify(in.record, *in.where, in.identity);
  work_.Push(&in);
  if (!identified) {
    in.without_id = true;
    in.identity.id.clear();
    DeadLetterOrStop(in,
                     {.error_class = "bad_record",
                      .text = identified.error(),
                      .shown = identified.error(),
                      .cause = LetterCause::kIdentity},
                     now);
  }
  Advance(now);
}

void Flow::JoinChain(InFlight& in) {
  if (options_.order == Order::kNone) return;
  OrderChain& chain = options_.order == Order::kKey ? chains_.Of(in.record.partition, in.record.key)
                                                    : in.assignment->chain;
  chain.Join(in);
  const bool waits = options_.order == Order::kKey && !in.record.key && in.chain_before != nullptr;
  const bool many = std::cmp_greater(in_flight(), tuning_.concurrency);
  if (!waits || !many || !options_.handler.outside() || std::exchange(told_keyless_, true)) return;
  Note(locking::Severity::kWarn, "keyless_records",
       fmt::format("records without a key are handled one after another, as those of one key are; "
                   "with processing.order: none {} at a time",
                   tuning_.concurrency),
       in);
}

}  // namespace fencepost::consumer
