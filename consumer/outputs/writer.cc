#include "consumer/outputs/writer.h"

#include <utility>

#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstWait{50};
constexpr milliseconds kMaxWait{5000};
constexpr milliseconds kLeastWait{10};  // before what was left out is tried again
constexpr milliseconds kBetweenNotes{30'000};
constexpr milliseconds kBetweenRefusals{60'000};
constexpr std::size_t kPruneBatch = 1000;

}  // namespace

Writer::Writer(std::unique_ptr<Output> output, std::optional<PruneScope> prune,
               ConsumerObserver* observer, Callbacks callbacks, std::size_t most_in_a_row,
               std::chrono::milliseconds prune_interval)
    : output_(std::move(output)),
      retry_(output_->max_records(), most_in_a_row),
      prune_(std::move(prune)),
      prune_interval_(prune_interval),
      observer_(observer),
      callbacks_(std::move(callbacks)) {}

Writer::~Writer() { Stop(); }

void Writer::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Writer::Write(std::unique_ptr<WriteBatch> batch) {
  {
    const std::lock_guard lock(mutex_);
    queue_.Push(std::move(batch));
  }
  changed_.notify_one();
}

void Writer::LookUp(std::unique_ptr<LookupBatch> lookup) {
  {
    const std::lock_guard lock(mutex_);
    queue_.Push(std::move(lookup));
  }
  changed_.notify_one();
}

void Writer::SetPrunable(std::vector<SourceOffset> committed) {
  const std::lock_guard lock(mutex_);
  prunable_ = std::move(committed);
}

void Writer::Stop() {
  Interrupt();
  if (thread_.joinable()) thread_.join();
}

void Writer::Interrupt() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  output_->Interrupt();
}

void Writer::Run() {
  if (!PrepareUntilUp()) return;
  prune_at_ = steady_clock::now() + prune_interval_;
  for (;;) {
    WriterQueue::Turn turn;
    {
      std::unique_lock lock(mutex_);
      const auto due = [this] { return stopping_ || !queue_.Empty(); };
      if (prune_) {
        changed_.wait_until(lock, prune_at_, due);
      } else {
        changed_.wait(lock, due);
      }
      if (stopping_) return;
      turn = queue_.Take();
    }
    if (turn.lookup != nullptr && !LookUpUntilKnown(std::move(turn.lookup))) return;
    if (turn.batch != nullptr && !WriteUntilKnown(std::move(turn.batch))) return;
    if (!PruneIfDue()) return;
  }
}

// The output is looked at before the first record comes, so that what is wrong shows at once.
bool Writer::PrepareUntilUp() {
  milliseconds wait = kFirstWait;
  for (;;) {
    const auto prepared = output_->Prepare();
    if (prepared) break;
    if (!BackOffBeforeRetry(prepared.error(), wait)) return false;
  }
  Tell(Doing::kAsk, "");
  return true;
}

// False: it was stopped, or can never write again; what is queued behind must not be written then.
bool Writer::WriteUntilKnown(std::unique_ptr<WriteBatch> batch) {
  retry_.Begin(batch->id, batch->answered, batch->request.items, locking::BootClock::now());
  bool answered = false;
  for (;;) {
    if (locking::BootClock::now() >= batch->until) retry_.Expire();
    const WriteRetry::Step step = retry_.Next();
    if (!step.reason.empty() && step.kind == WriteRetry::Step::Kind::kWait) {
      Tell(Doing::kWrite, step.reason);
    }
    switch (step.kind) {
      case WriteRetry::Step::Kind::kWait:
        if (!(step.left_out ? WaitLeftOut(*batch, step.wait) : WaitUnlessStopped(step.wait)))
          return false;
        break;
      case WriteRetry::Step::Kind::kWrite:
        if (!WritePart(*batch, step, answered)) return false;
        break;
      case WriteRetry::Step::Kind::kDone:
        if (step.reason.empty() && answered) Tell(Doing::kWrite, "");
        callbacks_.written(std::move(batch), retry_.Take());
        return true;
    }
  }
}

// `answered`: the output is there, whatever it says of the records.
bool Writer::WritePart(WriteBatch& batch, const WriteRetry::Step& step, bool& answered) {
  // Of the try that writes, not of one that only asks what became of it.
  if (!output_->OutcomePending()) batch.began = locking::BootClock::now();
  const auto before = steady_clock::now();
  auto outcomes = WriteStep(*output_, batch.request, step);
  if (std::string held = output_->HeldBack(); held != held_) {
    held_ = std::move(held);
    if (callbacks_.held) callbacks_.held(held_);
  }
  const bool taken = Planted("interrupted_write_counts") && !WaitUnlessStopped(milliseconds(0));
  if (taken) outcomes = std::vector<WriteOutcome>(step.items.size());
  if (outcomes) {
    answered = true;
    ++batches_;
    if (step.apart) NoteRefusals();
    observer_->OnWrite(steady_clock::now() - before, step.items.size());
    retry_.OnWritten(std::move(*outcomes));
    return true;
  }
  const OutputError& error = outcomes.error();
  if (!error.later.empty() && !error.fatal) {
    answered = true;
    NoteLater(error);
    retry_.OnFailed(error);
    return WaitUnlessStopped(milliseconds(0));
  }
  // The search for the record that is refused is no trouble of the output's.
  const bool search = error.failure == WriteFailure::kRefused && !error.fatal;
  answered |= search;
  observer_->OnRetry(RetryStage::kOutput);
  if (!search && !ReportUnlessFatal(Doing::kWrite, error)) return false;
  retry_.OnFailed(error);
  return WaitUnlessStopped(milliseconds(0));
}

bool Writer::LookUpUntilKnown(std::unique_ptr<LookupBatch> lookup) {
  milliseconds wait = kFirstWait;
  output_->OnAssignment(lookup->epoch);
  LookupTry asked(*lookup);
  for (;;) {
    auto entries = output_->Lookup(asked.ids());
    if (entries) {
      Tell(Doing::kAsk, "");
      auto all = asked.Answer(*lookup, std::move(*entries));
      callbacks_.looked_up(std::move(lookup), std::move(all));
      return true;
    }
    observer_->OnRetry(RetryStage::kOutput);
    if (!entries.error().later.empty() && !entries.error().fatal) {
      NoteLater(entries.error());
      asked.LeaveOut(entries.error().later);
      if (!WaitUnlessStopped(milliseconds(0))) return false;
      continue;
    }
    if (!BackOffBeforeRetry(entries.error(), wait)) return false;
  }
}

// The output is there, and takes what is of other partitions.
void Writer::NoteLater(const OutputError& error) {
  const auto now = steady_clock::now();
  if (now < note_later_at_) return;
  note_later_at_ = now + kBetweenNotes;
  observer_->OnNote(locking::Severity::kWarn, "topic_not_compared", error.error.Line());
}

// It is what makes a slow output slow, where it is often.
void Writer::NoteRefusals() {
  ++searched_;
  observer_->OnWriteSplit();
  const auto now = steady_clock::now();
  if (now < note_refusals_at_) return;
  note_refusals_at_ = now + kBetweenRefusals;
  observer_->OnNote(
      locking::Severity::kWarn, "output_refusals",
      fmt::format("{} of the last {} transactions were written in parts to find the records that "
                  "the output refuses, which takes time: see the dead letters of reason output",
                  std::exchange(searched_, 0), std::exchange(batches_, 0)));
}

bool Writer::ReportUnlessFatal(Doing doing, const OutputError& error) {
  if (error.fatal) {
    callbacks_.fatal(error.error);
    return false;
  }
  if (error.error.code == "dead_letter_failed") {
    observer_->OnDeadLetterError();
    observer_->OnNote(locking::Severity::kError, error.error.code, error.error.Line());
  }
  if (error.error.code == "ledger_behind_the_group") {
    observer_->OnNote(locking::Severity::kError, error.error.code, error.error.Line());
  }
  if (!error.retry_at_once) Tell(doing, error.error.Line());
  return true;
}

bool Writer::BackOffBeforeRetry(const OutputError& error, milliseconds& wait) {
  if (!ReportUnlessFatal(Doing::kAsk, error)) return false;
  if (error.retry_at_once) return WaitUnlessStopped(milliseconds(0));
  if (!WaitUnlessStopped(wait)) return false;
  wait = std::min(wait * 2, kMaxWait);
  return true;
}

bool Writer::WaitUnlessStopped(milliseconds wait) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, wait, [this] { return stopping_; });
}

bool Writer::WaitLeftOut(const WriteBatch& batch, milliseconds wait) {
  std::unique_lock lock(mutex_);
  queue_.LeaveOut(batch, locking::BootClock::now() + wait);
  if (changed_.wait_for(lock, kLeastWait, [this] { return stopping_; })) return false;
  changed_.wait_for(lock, wait,
                    [this] { return stopping_ || queue_.HasWork(locking::BootClock::now()); });
  return !stopping_;
}

// If both a look-up and a write fail, the newer error is reported. A look-up is retried until it
// succeeds, so its error ends before the next write; that of a write lasts until one succeeds.
void Writer::Tell(Doing doing, const std::string& trouble) {
  if (!trouble.empty()) {
    observer_->OnNote(locking::Severity::kWarn, "output_unavailable", trouble);
  }
  troubles_[static_cast<std::size_t>(doing)] = trouble;
  const std::string& other = troubles_[doing == Doing::kAsk ? 1 : 0];
  const std::string& reason = trouble.empty() ? other : trouble;
  if (reason_ == reason) return;
  if (reason.empty() && reason_) {
    observer_->OnNote(locking::Severity::kInfo, "output_available",
                      "the output takes writes again");
  }
  reason_ = reason;
  callbacks_.state(reason.empty(), reason);
}

bool Writer::PruneIfDue() {
  if (!prune_ || steady_clock::now() < prune_at_) return true;
  prune_at_ = steady_clock::now() + prune_interval_;
  {
    const std::lock_guard lock(mutex_);
    if (!prunable_) return true;
    prune_->committed = *prunable_;
  }
  const auto pruned = output_->Prune(*prune_, kPruneBatch);
  // A full batch means that more waits: go on between writes, never in one long sweep.
  const bool more = pruned && *pruned == kPruneBatch;
  prune_at_ = steady_clock::now() + (more ? milliseconds(0) : prune_interval_);
  if (!pruned && pruned.error().fatal) {
    callbacks_.fatal(pruned.error().error);
    return false;
  }
  if (!pruned) {
    observer_->OnNote(locking::Severity::kWarn, "ledger_prune_failed", pruned.error().error.Line());
  }
  return true;
}

}  // namespace fencepost::consumer
