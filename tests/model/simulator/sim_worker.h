// One worker: the shipped WorkerCore, pumped as consumer/worker/worker_impl.h and
// locking/redis/engine/engine.cc pump it: one step after the other on one thread, everything else
// by messages.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "consumer/worker/worker_core.h"
#include "tests/model/simulator/letters_in_a_row.h"
#include "tests/model/simulator/link.h"
#include "tests/model/simulator/sim_caller.h"
#include "tests/model/simulator/sim_consumer.h"
#include "tests/model/simulator/sim_handler.h"
#include "tests/model/simulator/sim_letters.h"
#include "tests/model/simulator/sim_transactions.h"
#include "tests/model/simulator/sim_writer.h"

namespace fencepost::simulator {

class SimWorker : public locking::LockObserver, public consumer::ConsumerObserver {
 public:
  SimWorker(World& world, Process& process);
  ~SimWorker() override;

  void Start();
  void Leave();  // in order: drain, commit, leave the group, die

  consumer::WorkerCore& core() { return core_; }
  locking::LockCore& locks() { return core_.locks(); }
  [[nodiscard]] const consumer::Flow& flow() const { return core_.flow(); }
  Process& process() { return process_; }
  SimConsumer& consumer() { return consumer_; }
  [[nodiscard]] const SimConsumer& consumer() const { return consumer_; }
  [[nodiscard]] const SimWriter& writer() const { return writer_; }
  [[nodiscard]] const SimHandler& handler() const { return handler_; }
  [[nodiscard]] const SimCaller& caller() const { return caller_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Link>>& links() const { return links_; }

  // --- from the links ------------------------------------------------------------------------
  void HandedIn();
  void Kick();
  void OnFreed(const SimNode& node, const std::string& name);
  void OnSending(const std::vector<locking::Op>& ops);
  void OnAnswered(const std::vector<locking::Reply>& replies);
  [[nodiscard]] bool Quiet() const;
  [[nodiscard]] bool Releasing() const;
  void OnClockStepped();

  void Delivered(const std::string& source) { row_.Delivered(source); }
  void LetterOut(const consumer::DeadLetter& letter);

  // --- from the consumer and the writer: one step of the engine's thread -----------------------
  void Act();

  [[nodiscard]] std::string_view NameOf(locking::LockId lock) const;

 private:
  void Pass();
  void Arm();
  void Watch();
  void Subscribe();
  void CarryOut(consumer::WorkerActions actions);
  template <typename Do>
  void CarryOut(bool any, Do carry_out);
  void CrashPerhaps();
  void Write(std::unique_ptr<consumer::WriteBatch> batch);

  // As an observer: what the shipped code reports.
  void OnInvariant(locking::Invariant invariant) override;
  void OnTakeover() override;
  void OnLoss(locking::LossReason reason) override;
  void OnRound(locking::RoundResult result, Nanos took) override;
  void OnExtension(locking::ExtensionResult result) override;
  void OnCompletedAfterExpiry() override;
  void OnRestartDetected(locking::NodeIndex node) override;
  void OnDedupeSkip(consumer::DedupeSource source) override;
  void OnUnlocked() override;
  void OnOutputFencing() override;
  void OnIdConflict() override;
  void OnRetry(consumer::RetryStage stage) override;
  void OnProcessed(consumer::ProcessedResult result, const consumer::WriteItem& item,
                   bool lost) override;
  void OnDeadLetter(consumer::DeadLetterReason reason) override;
  void OnSpans(std::vector<consumer::Span> spans) override;
  void AwaitMarks(Nanos until);

  World& world_;
  Process& process_;
  std::set<std::uint64_t> spans_;  // by their ids
  std::size_t ended_ = 0;          // records, as told to the observer
  std::size_t traced_ = 0;         // … as spans tell it
  consumer::WorkerCore core_;
  SimConsumer consumer_;
  SimWriter writer_;
  SimTransactions transactions_;
  SimHandler handler_;
  SimLetters letters_;
  SimCaller caller_;
  std::vector<std::unique_ptr<Link>> links_;
  const std::size_t most_in_a_row_;
  LettersInARow row_;
  bool kicked_ = false;
  bool handed_in_ = false;
  std::size_t watched_ = 0;  // of the events
  locking::Instant core_armed_ = locking::Instant::max();
  locking::Instant flow_armed_ = locking::Instant::max();
  std::unordered_map<std::uint64_t, std::string> names_;
};

}  // namespace fencepost::simulator
