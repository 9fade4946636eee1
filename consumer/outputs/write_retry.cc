#include "consumer/outputs/write_retry.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include "consumer/outputs/failure_text.h"
#include "consumer/record/text.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using Wait = WriteRetry::Wait;

constexpr Wait kFirstBackoff{50};
constexpr Wait kMaxBackoff{5000};
constexpr Wait kFirstPause{1000};
constexpr Wait kMostPause{30'000};
constexpr Wait kLeftOut{100};  // before a batch is handed back of which all was left out
constexpr std::size_t kDetailBytes = 1000;
constexpr std::size_t kSamples = 16;
constexpr std::size_t kSlowSamples = 3;
constexpr std::size_t kMostConflicts = 5;
constexpr std::size_t kMostSlow = 3;     // records alone, each of which takes statement_timeout
constexpr std::size_t kFirstGrowth = 8;  // transactions at the limit, then it grows by a quarter
constexpr std::size_t kLastGrowth = 1024;
constexpr std::size_t kMostAlone = 10'000;
constexpr std::chrono::minutes kReread{1};
constexpr std::size_t kMostKinds = 100;
constexpr std::uint8_t kLasting = 4;  // batches: one of so many before had refused records

WriteOutcome BadAlone(const OutputError& error, DeadLetterReason reason) {
  const std::string& detail = error.detail.empty() ? error.error.what : error.detail;
  return {.result = WriteResult::kBadRecord,
          .detail = OneLine(detail, kDetailBytes),
          .reason = reason,
          .shown = OneLine(error.error.what, kDetailBytes),
          .may_pass = error.between != OutputError::Between::kNone};
}

}  // namespace

WriteRetry::WriteRetry(std::size_t max_records, std::size_t most_in_a_row)
    : max_records_(max_records),
      limit_(max_records == 0 ? std::numeric_limits<std::size_t>::max() : max_records),
      grow_after_(kFirstGrowth),
      run_(most_in_a_row),
      pause_(kFirstPause),
      backoff_(kFirstBackoff) {}

void WriteRetry::Begin(std::uint64_t batch, std::uint64_t answered,
                       const std::vector<WriteItem>& items, locking::Instant now) {
  FENCEPOST_CHECK(batch > batch_ && answered < batch, "batches come in their order");
  batch_ = batch;
  items_ = &items;
  for (auto chain = held_.begin(); chain != held_.end();) {
    std::erase_if(chain->second, [&](const Held& held) { return held.batch <= answered; });
    chain = chain->second.empty() ? held_.erase(chain) : std::next(chain);
  }
  states_.assign(items.size(), State::kOpen);
  outcomes_.assign(items.size(), WriteOutcome{});
  tries_.assign(items.size(), 0);
  in_doubt_.assign(items.size(), 0);
  work_.clear();
  put_off_.clear();
  suspects_.clear();
  slow_suspects_ = conflicts_ = locked_in_row_ = 0;
  now_ = now;
  reread_for_.clear();
  catalog_reread_ = reconnect_ = false;
  took_rows_ = something_written_ = handed_back_ = left_out_ = finished_ = false;
  backoff_ = kFirstBackoff;
  wait_ = Wait(0);
  trouble_.clear();
  Items together;
  Items behind;
  std::deque<Items> alone;
  std::set<std::uint64_t> chains;
  for (std::size_t item = 0; item < items.size(); ++item) {
    const std::uint64_t chain = At(item).chain;
    if (chains.contains(chain)) {
      behind.push_back(item);
    } else if (alone_.contains(At(item).record_id)) {
      alone.push_back({item});
      if (chain != 0) chains.insert(chain);
    } else {
      together.push_back(item);
    }
  }
  work_ = std::move(alone);
  work_.push_front(std::move(together));
  work_.push_back(std::move(behind));
  apart_ = apart_for_ > 0 && work_.front().size() > 1;
}

// --- which part is next ------------------------------------------------------------------------

WriteRetry::Step WriteRetry::Next() {
  Step step;
  if (wait_ == Wait(0) && !finished_ && !NextPart()) Finish();
  if (wait_ > Wait(0)) {
    step.kind = Step::Kind::kWait;
    step.wait = std::exchange(wait_, Wait(0));
    step.left_out = finished_ && left_out_ && !handed_back_;
    step.reason = trouble_;
  } else if (finished_) {
    step.reason = trouble_;
  } else {
    step.kind = Step::Kind::kWrite;
    step.items = current_ = work_.front();
    step.reconnect = std::exchange(reconnect_, false);
    step.apart = apart_;
    step.table_takes = took_rows_;
  }
  return step;
}

bool WriteRetry::NextPart() {
  if (whole()) return true;
  while (!work_.empty()) {
    Items& part = work_.front();
    std::erase_if(part, [&](std::size_t item) { return !Writable(item); });
    if (part.empty()) {
      work_.pop_front();
      continue;
    }
    if (part.size() > limit_) {
      const auto end = part.begin() + static_cast<std::ptrdiff_t>(limit_);
      Items first(part.begin(), end);
      part.erase(part.begin(), end);
      work_.push_front(std::move(first));
    }
    return true;
  }
  return false;
}

// What is behind one of its chain that was not written is handed back as it is met.
bool WriteRetry::Writable(std::size_t item) {
  if (states_[item] == State::kRecheck) return true;
  if (states_[item] != State::kOpen) return false;
  const auto chain = held_.find(At(item).chain);
  if (chain == held_.end() || Planted("effects_behind_a_refused_record")) return true;
  const Offset offset = At(item).record->offset;
  const bool held = std::ranges::any_of(chain->second,
                                        [&](const Held& before) { return before.offset < offset; });
  if (!held) return true;
  Decide(item, {.result = WriteResult::kNotWritten});
  return false;
}

void WriteRetry::Decide(std::size_t item, WriteOutcome outcome) {
  states_[item] = State::kDecided;
  if (EffectIsWritten(outcome.result)) {
    something_written_ = true;
    if (!alone_.empty()) alone_.erase(std::string(At(item).record_id));
  } else {
    outcome.in_doubt = in_doubt_[item] != 0;
    if (At(item).chain != 0) HoldBehind(item);
  }
  outcomes_[item] = std::move(outcome);
}

void WriteRetry::HoldBehind(std::size_t item) {
  std::vector<Held>& held = held_[At(item).chain];
  const Offset offset = At(item).record->offset;
  if (held.empty() || held.back().batch != batch_) held.push_back({batch_, offset});
  held.back().offset = std::min(held.back().offset, offset);
}

void WriteRetry::HandBack(std::size_t item) {
  handed_back_ = true;
  Decide(item, {.result = WriteResult::kNotWritten});
}

// --- what came of it ---------------------------------------------------------------------------

void WriteRetry::OnWritten(std::vector<WriteOutcome> outcomes) {
  if (whole()) {
    outcomes_ = std::move(outcomes);
    finished_ = true;
    return;
  }
  FENCEPOST_CHECK(outcomes.size() == current_.size(), "one outcome an item");
  backoff_ = kFirstBackoff;
  conflicts_ = locked_in_row_ = 0;
  const bool apart = std::exchange(apart_, false);
  const auto took = [](const WriteOutcome& one) {
    return one.result == WriteResult::kCommitted && one.took_rows;
  };
  const bool took_rows = std::exchange(took_rows_, false) || std::ranges::any_of(outcomes, took);
  std::size_t decided = 0;
  bool dirty = false, again = false;
  for (std::size_t i = 0; i < current_.size(); ++i) {
    WriteOutcome& outcome = outcomes[i];
    if (outcome.result == WriteResult::kNotWritten) continue;
    const bool refused = outcome.result == WriteResult::kBadRecord &&
                         outcome.reason == DeadLetterReason::kOutput && apart;
    dirty = dirty || refused;
    if (refused && !outcome.may_pass && MustRereadCatalog(WithoutNumbers(outcome.shown))) {
      again = true;
      continue;
    }
    ++decided;
    if (refused && took_rows) OnGuilty(WithoutNumbers(outcome.shown));
    refused && !took_rows ? OnAlone(current_[i], std::move(outcome))
                          : Decide(current_[i], std::move(outcome));
  }
  if (again) {
    took_rows_ = took_rows;
    RereadCatalog();
  }
  if (decided == 0 && !again) WaitForService();
  if (took_rows && apart_for_ > 0) --apart_for_;
  if (dirty) apart_for_ = kLasting;
  if (decided == current_.size()) GrowIfFull();
  if (took_rows) OnTableAccepts();
  if (put_off_.empty() && !WithinMaxConsecutive()) Sample(kSamples);
}

// The table takes records: so what was refused before is to blame for it itself. It counts at once
// where it would count without; of a larger number, each is tried once more, since the table may
// just have been fixed.
void WriteRetry::OnTableAccepts() {
  const bool sure = WithinMaxConsecutive();
  for (const std::size_t item : suspects_) {
    OnGuilty(WithoutNumbers(outcomes_[item].shown));
    states_[item] = sure || tries_[item] > 0 ? State::kDecided : State::kRecheck;
  }
  for (auto& part : put_off_) work_.push_back(std::move(part));
  put_off_.clear();
  for (const std::size_t item : suspects_) {
    if (states_[item] == State::kRecheck) work_.push_back({item});
  }
  suspects_.clear();
  slow_suspects_ = 0;
  run_.End();
  pause_ = kFirstPause;
}

void WriteRetry::OnFailed(const OutputError& error) {
  if (error.retry_at_once && (whole() || ++conflicts_ <= kMostConflicts)) return;
  const bool conflict = std::exchange(conflicts_, 0) > kMostConflicts;
  if (whole()) return WaitForService();
  if (conflict) return OnLocked(error);
  if (error.unanswered && !Planted("unanswered_write_is_not_told")) {
    for (const std::size_t item : current_) in_doubt_[item] = 1;
  }
  if (!error.later.empty()) return LeaveOut(error.later);
  took_rows_ = took_rows_ && error.failure == WriteFailure::kUnavailable;
  switch (error.failure) {
    case WriteFailure::kUnavailable:  // also an unanswered COMMIT: the same part is written again
      return WaitForService();
    case WriteFailure::kLocked:
      return OnLocked(error);
    case WriteFailure::kTooSlow:
      return OnTooSlow(error);
    case WriteFailure::kClientTimeout:
      return OnClientTimeout();
    case WriteFailure::kRefused:
      return OnRefused(error);
  }
}

void WriteRetry::LeaveOut(const std::vector<std::size_t>& places) {
  left_out_ = true;
  for (const std::size_t place : places) {
    Decide(current_[place], {.result = WriteResult::kNotWritten});
  }
}

void WriteRetry::WaitForService() {
  wait_ = backoff_;
  backoff_ = std::min(backoff_ * 2, kMaxBackoff);
}

void WriteRetry::OnRefused(const OutputError& error) {
  refusal_ = error;
  const bool again = std::exchange(apart_, current_.size() > 1);
  if (error.between == OutputError::Between::kNone && MustRereadCatalog(error.kind)) {
    reread_for_ = error.kind;
    return RereadCatalog();
  }
  if (again) return Split();
  if (current_.size() > 1) return;
  OnAlone(current_.front(), BadAlone(error, DeadLetterReason::kOutput));
  if (put_off_.empty() && !WithinMaxConsecutive()) Sample(kSamples);
}

bool WriteRetry::MustRereadCatalog(const std::string& kind) const {
  if (catalog_reread_) return false;
  const auto last = reread_.find(kind);
  return last == reread_.end() || now_ - last->second >= kReread;
}

void WriteRetry::RereadCatalog() {
  catalog_reread_ = reconnect_ = true;
  apart_ = work_.front().size() > 1;
}

// A refusal of this kind was a record's, by the catalog as it is now.
void WriteRetry::OnGuilty(const std::string& kind) {
  if (!catalog_reread_) return;
  if (reread_.size() >= kMostKinds) reread_.clear();
  reread_.insert_or_assign(kind, now_);
  if (!reread_for_.empty()) reread_.insert_or_assign(std::exchange(reread_for_, {}), now_);
}

void WriteRetry::OnTooSlow(const OutputError& error) {
  if (current_.size() > 1) return HalveLimit();
  if (++tries_[current_.front()] < 2) return;
  refusal_ = error;
  OnAlone(current_.front(), BadAlone(error, DeadLetterReason::kTimeout));
  // Each takes the whole statement_timeout, twice.
  if (++slow_suspects_ > kMostSlow && put_off_.empty()) Sample(kSlowSamples);
}

void WriteRetry::OnClientTimeout() {
  WaitForService();
  if (current_.size() > 1) return HalveLimit();
  const std::size_t item = current_.front();
  if (++tries_[item] < 2) return;
  if (alone_.size() < kMostAlone) alone_.emplace(At(item).record_id);
  HandBack(item);
}

void WriteRetry::OnLocked(const OutputError& error) {
  // Each waits for the whole lock_timeout. So many as it takes to halve down to one record.
  const std::size_t most = std::bit_width(max_records_) + std::size_t{2};
  if (++locked_in_row_ >= most) return GiveUp(error.error);
  if (current_.size() > 1) return Split();
  const std::size_t item = current_.front();
  if (alone_.size() < kMostAlone) alone_.emplace(At(item).record_id);
  HandBack(item);
}

// A record failed by itself. Where it may be written again it says nothing of the table yet.
void WriteRetry::OnAlone(std::size_t item, WriteOutcome outcome) {
  const bool proves = states_[item] != State::kRecheck && !outcome.may_pass;
  Decide(item, std::move(outcome));
  if (!proves) return;
  states_[item] = State::kSuspect;
  suspects_.push_back(item);
}

void WriteRetry::Split() {
  apart_ = false;
  const Items part = current_;
  const auto middle = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
  work_.front().assign(middle, part.end());
  work_.emplace_front(part.begin(), middle);
}

// --- how much at a time ------------------------------------------------------------------------

void WriteRetry::HalveLimit() {
  apart_ = false;
  limit_ = std::max<std::size_t>(current_.size() / 2, 1);
  full_in_row_ = 0;
  if (std::exchange(grown_, false)) grow_after_ = std::min(grow_after_ * 2, kLastGrowth);
}

void WriteRetry::GrowIfFull() {
  if (current_.size() < limit_ || limit_ >= max_records_) return;
  if (++full_in_row_ < grow_after_) return;
  full_in_row_ = 0;
  grown_ = true;
  limit_ = std::min(limit_ + std::max<std::size_t>(limit_ / 4, 1), max_records_);
}

// --- the verdict -------------------------------------------------------------------------------

// No more were refused in a row than can be believed to be bad.
bool WriteRetry::WithinMaxConsecutive() const { return run_.Believes(suspects_.size()); }

// More records in a row were refused than can be believed. Instead of going through all that is
// left, some are picked from all over it, none of them behind another of its chain.
void WriteRetry::Sample(std::size_t most) {
  Items first;
  std::set<std::uint64_t> chains;
  for (const Items& part : work_) {
    for (const std::size_t item : part) {
      const std::uint64_t chain = At(item).chain;
      const bool open = Writable(item) && states_[item] == State::kOpen;
      if (open && (chain == 0 || chains.insert(chain).second)) first.push_back(item);
    }
  }
  put_off_ = std::exchange(work_, {});
  const std::size_t count = std::min(most, first.size());
  for (std::size_t i = 0; i < count; ++i) {
    work_.push_back({first[(turn_ + i * first.size() / count) % first.size()]});
  }
}

void WriteRetry::Finish() {
  if (!WithinMaxConsecutive() || !put_off_.empty()) {
    Error error = refusal_.error;
    error.code = "output_refuses";
    error.what = "the output refuses every record: " + error.what;
    run_.Fill();
    return GiveUp(std::move(error));
  }
  run_.Count(suspects_.size());
  for (const std::size_t item : suspects_) {
    OnGuilty(WithoutNumbers(outcomes_[item].shown));
    states_[item] = State::kDecided;
  }
  suspects_.clear();
  finished_ = true;
  if (something_written_) return;
  if (!handed_back_) {
    if (left_out_) wait_ = kLeftOut;
    return;
  }
  wait_ = pause_;
  pause_ = std::min(pause_ * 2, kMostPause);
}

void WriteRetry::Expire() {
  if (finished_) return;
  for (std::size_t item = 0; item < states_.size(); ++item) {
    if (states_[item] != State::kDecided) HandBack(item);
  }
  work_.clear();
  put_off_.clear();
  suspects_.clear();
  wait_ = Wait(0);
  finished_ = true;
}

void WriteRetry::GiveUp(Error error) {
  ++turn_;
  Expire();
  trouble_ = error.Line();
  wait_ = pause_;
  pause_ = std::min(pause_ * 2, kMostPause);
}

std::vector<WriteOutcome> WriteRetry::Take() {
  FENCEPOST_CHECK(finished_ && wait_ == Wait(0), "a batch is taken before it is done");
  items_ = nullptr;
  return std::move(outcomes_);
}

}  // namespace fencepost::consumer
