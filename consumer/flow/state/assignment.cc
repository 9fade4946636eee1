#include "consumer/flow/state/assignment.h"

#include <algorithm>
#include <utility>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

// Between two commits for the sake of failures alone.
constexpr std::chrono::seconds kFailedBetween{5};

// Attempts count for the next owner. An outage alone does not: its newest record says it.
bool IsToldOfFirst(const FailedRecord& a, const FailedRecord& b) {
  if (a.attempts == 0 && b.attempts == 0) return a.last > b.last;
  return a.attempts > 0 && b.attempts == 0;
}

}  // namespace

Assignment::Assignment(const AssignedPartition& assigned)
    : index(assigned.partition),
      where(assigned.where),
      epoch(assigned.epoch),
      start(assigned.start),
      position(assigned.start),
      watermark(assigned.start),
      committing(assigned.start),
      committed(assigned.start) {
  for (const FailedRecord& one : assigned.failed) failed.emplace(one.offset, one);
}

void Assignment::Deliver(InFlight& record, Instant now) {
  if (slots.empty()) oldest_since = stall_told = now;
  position = record.record.offset + 1;
  record.record.gap += std::exchange(filtered, 0);
  record.slot = first_slot + slots.size();
  slots.push_back({record.record.offset, &record});
  ++unfinished;
}

void Assignment::Finish(const InFlight& record) {
  slots[record.slot - first_slot].record = nullptr;
  --unfinished;
  failed.erase(record.record.offset);
}

void Assignment::AdvanceWatermark(Instant now) {
  bool moved = false;
  while (!slots.empty() && slots.front().record == nullptr) {
    slots.pop_front();
    ++first_slot;
    moved = true;
  }
  if (moved) oldest_since = stall_told = now;
  watermark = slots.empty() || Planted("commit_past_a_hole") ? position : slots.front().offset;
  failed.erase(failed.begin(), failed.lower_bound(watermark));
}

void Assignment::PassHoles(Offset to) { position = std::max(position, to); }

void Assignment::PassFiltered(const Record& record) {
  position = record.offset + 1;
  filtered += record.gap + 1;
  failed_changed = failed.erase(record.offset) > 0 || failed_changed;
}

void Assignment::OnCommitted(Offset next, std::optional<Instant> sent) {
  confirming = false;
  if (sent) confirmed = std::max(confirmed, sent);
  if (sent || Planted("failed_commit_counts")) {
    committed = std::max(committed, next);
  } else {
    committing = committed;
    failed_changed = failed_changed || !failed.empty();
  }
}

void Assignment::OnFailed(const FailedRecord& record) {
  failed.insert_or_assign(record.offset, record);
  failed_changed = true;
}

void Assignment::OnGivenUp(Offset offset) {
  failed_changed = failed.erase(offset) > 0 || failed_changed;
}

std::vector<FailedRecord> Assignment::TakeFailed(Offset next, Instant now) {
  failed_changed = failed_due = false;
  failed_again = now + kFailedBetween;
  std::vector<FailedRecord> told;
  for (auto at = failed.lower_bound(next); at != failed.end(); ++at) told.push_back(at->second);
  if (told.size() <= kMostFailed) return told;
  std::ranges::stable_sort(told, IsToldOfFirst);
  told.resize(kMostFailed);
  std::ranges::sort(told, {}, &FailedRecord::offset);
  return told;
}

void Assignment::UpdateFailedDue(Instant now) {
  failed_due = failed_changed && (revoking || now >= failed_again);
}

void Assignment::UpdateEnd(Offset high) {
  end = std::max(end, high);
  if (!goal) goal = high;
}

Offset Assignment::NextAfterWrites() const {
  for (const Slot& slot : slots) {
    if (slot.record == nullptr || slot.record->stage() == Stage::kWriting) continue;
    if (Planted("transaction_moves_past_unfinished") && slot.record->stage() == Stage::kReady) {
      continue;
    }
    return slot.offset;
  }
  return position;
}

const InFlight* Assignment::Oldest() const {
  return slots.empty() ? nullptr : slots.front().record;
}

bool Assignment::WatermarkPastHole() const {
  return !slots.empty() && watermark > slots.front().offset;
}

bool Assignment::Busy() const {
  return std::ranges::any_of(slots, [](const Slot& slot) {
    const InFlight* r = slot.record;
    return r != nullptr && InLeasedPrefix(r->stage()) && !AwaitsTime(r->stage()) &&
           !(r->stage() == Stage::kPublishingDeadLetter && r->letter_refused);
  });
}

Offset Assignment::CommittedBefore(Nanos ago, Instant now) {
  if (then == Instant()) {
    committed_then = committed;
    then = now;
  }
  if (now - then >= ago) {
    committed_before = ago == Nanos(0) ? committed : committed_then;
    committed_then = committed;
    then = now;
  }
  return committed_before;
}

}  // namespace fencepost::consumer
