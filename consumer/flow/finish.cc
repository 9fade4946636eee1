// The way of a record ends: finished or blocked, and the watermark advances; what it holds.
#include <array>
#include <utility>

#include "consumer/flow/flow.h"

namespace fencepost::consumer {

namespace {

// Bytes that the values hold, with what their places cost.
std::uint64_t SizeOf(const HandlerValues& values) {
  std::uint64_t bytes = values.capacity() * sizeof(HandlerValues::value_type);
  for (const auto& value : values) bytes += value ? value->size() : 0;
  return bytes;
}

}  // namespace

void Flow::Tell(ProcessedResult result, InFlight& in, bool lost, std::string_view error) {
  // By the order of ProcessedResult.
  constexpr std::array<std::string_view, 6> kNames = {"done",   "skipped",   "dead_lettered",
                                                      "failed", "no_output", "filtered"};
  observer_->OnProcessed(result, ItemOf(in), lost);
  tracer_.End(in, kNames[static_cast<std::size_t>(result)], error);
}

// Behind an unfinished record it leaves its offset, and nothing that takes room. It leaves its
// chain first: whose turn it is in its unit depends on those before it that have lost their leases.
void Flow::Finish(InFlight& in, Now now) {
  Assignment& partition = *in.assignment;
  in.BecomeFinished();
  LeaveChain(in);
  locks_.Leave(in, now);
  if (!partition.gone) partition.Finish(in);
  Recycle(in);
  AdvanceWatermark(partition, now);
}

void Flow::LeaveChain(InFlight& in) {
  OrderChain* const chain = in.chain;
  if (chain == nullptr) return;
  work_.Push(chain->Leave(in));
  if (chain->tail == nullptr && options_.order == Order::kKey) chains_.Remove(*chain);
}

void Flow::AdvanceWatermark(Assignment& partition, Now now) {
  if (partition.gone) return;
  partition.AdvanceWatermark(now.boot);
  if (!withheld_.empty()) ReleaseOldest(partition);
  const auto blocked = partition.blocked.find(partition.watermark);
  if (blocked == partition.blocked.end() || !taking_) return;
  taking_ = false;
  actions_.stop = blocked->second;
}

// The pipeline cannot go past this record: it keeps the watermark. The worker drains and stops,
// once all that was delivered before it in its partition is finished. Somebody starts it again
// then, and its attempts begin anew.
void Flow::Block(InFlight& in, Error error, Now now) {
  MarkOutOfPrefix(in, true);
  in.BecomeBlocked();
  locks_.GiveBackBehind(in, now);
  in.Tell(error.code, error.what);
  Tell(ProcessedResult::kFailed, in, false, error.what);
  error.where = SourceText(*in.where, in.record.offset);
  Assignment& partition = *in.assignment;
  partition.blocked.emplace(in.record.offset, std::move(error));
  partition.OnGivenUp(in.record.offset);
  locks_.Leave(in, now);  // those with the same id must not wait for it
  AdvanceWatermark(partition, now);
}

// What it holds counts against max_in_flight_bytes: the record, an id that is stored as its digest,
// what a handler made of it, and its dead letter.
void Flow::UpdateBytes(InFlight& in) {
  std::uint64_t bytes = in.record.Bytes() + in.identity.whole.size() + SizeOf(in.values);
  if (in.letter != nullptr) bytes += in.letter->error.size() + sizeof(DeadLetter);
  backpressure_.OnBytes(*in.assignment, std::exchange(in.bytes, bytes), bytes);
}

}  // namespace fencepost::consumer
