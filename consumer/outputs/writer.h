// Runs an Output on a thread of its own: takes batches in order, writes each by its WriteRetry
// until all outcomes are known, and hands them back, in turn with lookups in the ledger. A database
// that is away, full, or refuses everything is waited for, with back-off, and said once in a while
// in one line; a transaction without an outcome is not given up while the writer runs and its batch
// may be written (WriteBatch::until). The output is up while neither the last write nor the last
// question to it is in trouble: an output that answers look-ups and refuses every record is not.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "consumer/flow/ports/ports.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/write_retry.h"
#include "consumer/outputs/writer_queue.h"
#include "consumer/pipeline/observer.h"

namespace fencepost::consumer {

class Writer {
 public:
  // All are called on the writer's thread.
  using Written = std::function<void(std::unique_ptr<WriteBatch>, std::vector<WriteOutcome>)>;
  using LookedUp =
      std::function<void(std::unique_ptr<LookupBatch>, std::vector<std::optional<LedgerEntry>>)>;
  using State = std::function<void(bool up, std::string reason)>;
  using Held = std::function<void(std::string reason)>;  // Output::HeldBack, where it changes
  using Fatal = std::function<void(Error error)>;  // it can never write again; nothing follows

  struct Callbacks {
    Written written;
    LookedUp looked_up;
    State state;
    Fatal fatal;
    Held held = nullptr;
  };

  // `prune`: how long ledger rows are kept, and the topics; nullopt: for ever. Its `committed`
  // comes by SetPrunable. `most_in_a_row`: WriteRetry's.
  Writer(std::unique_ptr<Output> output, std::optional<PruneScope> prune,
         ConsumerObserver* observer, Callbacks callbacks, std::size_t most_in_a_row = kMostInARow,
         std::chrono::milliseconds prune_interval = std::chrono::seconds(10));
  ~Writer();  // Stop and join
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Start();
  void Write(std::unique_ptr<WriteBatch> batch);     // any thread
  void LookUp(std::unique_ptr<LookupBatch> lookup);  // any thread
  // Only rows of records below these offsets may be forgotten from now on. Nothing is before the
  // first call: what the group has not committed may come again, and the ledger must know it. Any
  // thread.
  void SetPrunable(std::vector<SourceOffset> committed);
  // Interrupts what blocks; batches without an outcome are dropped (their offsets did not move).
  void Stop();
  void Interrupt();  // as Stop, without waiting for the thread

 private:
  void Run();
  bool PrepareUntilUp();
  bool WriteUntilKnown(std::unique_ptr<WriteBatch> batch);
  bool WritePart(WriteBatch& batch, const WriteRetry::Step& step, bool& answered);
  bool LookUpUntilKnown(std::unique_ptr<LookupBatch> lookup);
  // What is in trouble, or goes well again: each ends its own trouble only.
  enum class Doing : std::uint8_t { kAsk, kWrite };  // kAsk: preparing, looking up
  // Notes it; false: it can never write again.
  bool ReportUnlessFatal(Doing doing, const OutputError& error);
  // Whether to ask again, after a wait that grows.
  bool BackOffBeforeRetry(const OutputError& error, std::chrono::milliseconds& wait);
  bool WaitUnlessStopped(std::chrono::milliseconds wait);
  // Not while there is work of other partitions.
  bool WaitLeftOut(const WriteBatch& batch, std::chrono::milliseconds wait);
  void NoteLater(const OutputError& error);
  void NoteRefusals();
  void Tell(Doing doing, const std::string& trouble);  // "": none
  bool PruneIfDue();                                   // false: the output can never write again

  std::unique_ptr<Output> output_;
  WriteRetry retry_;
  std::optional<PruneScope> prune_;  // the writer's thread
  const std::chrono::milliseconds prune_interval_;
  ConsumerObserver* const observer_;
  const Callbacks callbacks_;
  std::array<std::string, 2> troubles_;  // by Doing; "": none
  std::optional<std::string> reason_;    // as was told last; "": up
  std::string held_;                     // as was told last
  std::chrono::steady_clock::time_point prune_at_;
  std::chrono::steady_clock::time_point note_later_at_;  // again
  // Since the last note of them: transactions, and those that were written in parts.
  std::size_t batches_ = 0, searched_ = 0;
  std::chrono::steady_clock::time_point note_refusals_at_;

  std::mutex mutex_;
  std::condition_variable changed_;
  WriterQueue queue_;                                  // guarded by mutex_
  std::optional<std::vector<SourceOffset>> prunable_;  // guarded by mutex_
  bool stopping_ = false;                              // guarded by mutex_
  std::thread thread_;
};

}  // namespace fencepost::consumer
