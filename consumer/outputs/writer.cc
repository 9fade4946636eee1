#include "consumer/outputs/writer.h"

#include <utility>

namespace fencepost::consumer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstBackoff{50};
constexpr milliseconds kMaxBackoff{5000};
constexpr std::chrono::seconds kPruneInterval{10};
constexpr std::size_t kPruneBatch = 1000;

}  // namespace

Writer::Writer(std::unique_ptr<Output> output, std::optional<std::chrono::seconds> keep,
               ConsumerObserver* observer, Callbacks callbacks)
    : output_(std::move(output)),
      keep_(keep),
      observer_(observer),
      callbacks_(std::move(callbacks)) {}

Writer::~Writer() { Stop(); }

void Writer::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Writer::Write(std::unique_ptr<WriteBatch> batch) {
  {
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  changed_.notify_one();
}

void Writer::LookUp(std::unique_ptr<LookupBatch> lookup) {
  {
    const std::lock_guard lock(mutex_);
    lookups_.push_back(std::move(lookup));
  }
  changed_.notify_one();
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
  prune_at_ = steady_clock::now() + kPruneInterval;
  for (;;) {
    std::unique_ptr<WriteBatch> batch;
    std::unique_ptr<LookupBatch> lookup;
    {
      std::unique_lock lock(mutex_);
      const auto due = [this] { return stopping_ || !batches_.empty() || !lookups_.empty(); };
      if (keep_) {
        changed_.wait_until(lock, prune_at_, due);
      } else {
        changed_.wait(lock, due);
      }
      if (stopping_) return;
      if (!lookups_.empty()) {
        lookup = std::move(lookups_.front());
        lookups_.pop_front();
      } else if (!batches_.empty()) {
        batch = std::move(batches_.front());
        batches_.pop_front();
      }
    }
    if (lookup != nullptr) LookUpUntilKnown(std::move(lookup));
    if (batch != nullptr) WriteUntilKnown(std::move(batch));
    PruneIfDue();
  }
}

// The output is looked at before the first record comes, so that what is wrong shows at once.
bool Writer::PrepareUntilUp() {
  milliseconds wait = kFirstBackoff;
  for (;;) {
    const auto prepared = output_->Prepare();
    if (prepared) break;
    if (!Again(prepared.error(), wait)) return false;
  }
  Tell(true, "");
  return true;
}

// An interrupted COMMIT is resolved by the same write again, and by nothing else.
void Writer::WriteUntilKnown(std::unique_ptr<WriteBatch> batch) {
  milliseconds wait = kFirstBackoff;
  for (;;) {
    // Of the try that writes, not of one that only asks what became of it.
    if (!output_->OutcomePending()) batch->began = locking::BootClock::now();
    const auto before = steady_clock::now();
    auto outcomes = output_->Write(batch->request);
    if (outcomes) {
      observer_->OnWrite(steady_clock::now() - before, batch->request.items.size());
      Tell(true, "");
      callbacks_.written(std::move(batch), std::move(*outcomes));
      return;
    }
    observer_->OnRetry(RetryStage::kOutput);
    if (!Again(outcomes.error(), wait)) return;
  }
}

void Writer::LookUpUntilKnown(std::unique_ptr<LookupBatch> lookup) {
  milliseconds wait = kFirstBackoff;
  for (;;) {
    auto entries = output_->Lookup(lookup->ids);
    if (entries) {
      Tell(true, "");
      callbacks_.looked_up(std::move(lookup), std::move(*entries));
      return;
    }
    observer_->OnRetry(RetryStage::kOutput);
    if (!Again(entries.error(), wait)) return;
  }
}

bool Writer::Again(const OutputError& error, milliseconds& wait) {
  if (error.fatal) {
    callbacks_.fatal(error.error);
    return false;
  }
  if (error.error.code == "dead_letter_failed") observer_->OnDeadLetterError();
  if (error.retry_at_once) return WaitUnlessStopped(milliseconds(0));
  Tell(false, error.error.Line());
  if (!WaitUnlessStopped(wait)) return false;
  wait = std::min(wait * 2, kMaxBackoff);
  return true;
}

bool Writer::WaitUnlessStopped(milliseconds wait) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, wait, [this] { return stopping_; });
}

void Writer::Tell(bool up, const std::string& reason) {
  if (!up) observer_->OnNote(locking::Severity::kWarn, "output_unavailable", reason);
  if (up_ == up) return;
  if (up && up_.has_value()) {
    observer_->OnNote(locking::Severity::kInfo, "output_available",
                      "the output takes writes again");
  }
  up_ = up;
  callbacks_.state(up, reason);
}

void Writer::PruneIfDue() {
  if (!keep_ || steady_clock::now() < prune_at_) return;
  const auto pruned = output_->Prune(*keep_, kPruneBatch);
  // A full batch means that more waits: go on between writes, never in one long sweep.
  const bool more = pruned && *pruned == kPruneBatch;
  prune_at_ = steady_clock::now() + (more ? milliseconds(0) : milliseconds(kPruneInterval));
  if (!pruned) {
    observer_->OnNote(locking::Severity::kWarn, "ledger_prune_failed", pruned.error().error.Line());
  }
}

}  // namespace fencepost::consumer
