#include "consumer/flow/state/in_flight.h"

#include <utility>

#include "locking/base/check.h"

namespace fencepost::consumer {

void InFlight::Become(Stage stage) {
  FENCEPOST_CHECK(MayFollow(stage, stage_), StageName(stage));
  stage_ = stage;
  if (trace != nullptr) trace->OnStage(stage);
}

// --- before its lease counts -------------------------------------------------------------------

void InFlight::BecomeQueued() {
  Become(Stage::kQueued);
  ++ticket;
  looking = false;
  unjudged = 0;
}

void InFlight::BecomeWithheld() {
  FENCEPOST_CHECK(letter != nullptr && unit == nullptr, "withheld without a dead letter");
  Become(Stage::kWithheld);
}

void InFlight::BecomeWaitingForSameId() {
  FENCEPOST_CHECK(unit != nullptr, "nothing to wait for");
  Become(Stage::kWaitingForSameId);
}

void InFlight::BecomeLocking() {
  FENCEPOST_CHECK(unit != nullptr && !without_id, "nothing to lock");
  Become(Stage::kLocking);
}

void InFlight::BecomeGranted() {
  FENCEPOST_CHECK(unit != nullptr || without_id, "granted without a lock");
  Become(Stage::kGranted);
}

// --- in the leased prefix ----------------------------------------------------------------------

void InFlight::BecomeHandling(std::uint64_t new_call) {
  FENCEPOST_CHECK(call == 0, "a second handler call of one record");
  Become(Stage::kHandling);
  call = new_call;
  ++attempts;
}

void InFlight::BecomeRetrying() {
  FENCEPOST_CHECK(call == 0, "a retry before the answer");
  Become(Stage::kRetrying);
}

void InFlight::BecomeInDoubt() {
  FENCEPOST_CHECK(in_doubt_until != Instant(), "every write of it was answered");
  Become(Stage::kInDoubt);
}

// --- in others' hands --------------------------------------------------------------------------

void InFlight::BecomeWriting() {
  FENCEPOST_CHECK(call == 0, "written before the handler has answered");
  Become(Stage::kWriting);
}

void InFlight::BecomePublishing() {
  FENCEPOST_CHECK(letter != nullptr, "no dead letter to publish");
  Become(Stage::kPublishingDeadLetter);
  letter_refused = false;
}

// --- the end -----------------------------------------------------------------------------------

void InFlight::BecomeBlocked() {
  Become(Stage::kBlocked);
  ++ticket;
}

void InFlight::BecomeFinished() {
  Become(Stage::kFinished);
  ++ticket;
}

// It may still be in the work list. The memory of its id and of its trace is kept for the next
// record.
void InFlight::BecomeUnused() {
  FENCEPOST_CHECK(unit == nullptr && chain == nullptr, "others hang on a record that has gone");
  Become(Stage::kUnused);
  InFlight unused;
  unused.index = index;
  unused.ticket = ticket + 1;
  unused.to_advance = to_advance;
  unused.advance_after = advance_after;
  unused.identity = std::move(identity);
  if (trace != nullptr && !trace->Large()) unused.trace = std::move(trace);
  *this = std::move(unused);
}

}  // namespace fencepost::consumer
