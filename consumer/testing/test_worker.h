// One worker of a test: the shipped WorkerCore, pumped without threads: every answer comes by the
// timeline. Destroying it is killing it: nothing of what it had under way happens any more.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "consumer/handlers/batch_queue.h"
#include "consumer/outputs/write_retry.h"
#include "consumer/testing/test_world.h"
#include "consumer/worker/worker_core.h"

namespace fencepost::consumer {

class TestWorker {
 public:
  // `die` is called, at most once, when the test's fault kills it; it must not destroy the worker
  // at once.
  TestWorker(TestWorld& world, std::string name, AssignmentEpoch epoch, std::function<void()> die);
  ~TestWorker();
  TestWorker(const TestWorker&) = delete;
  TestWorker& operator=(const TestWorker&) = delete;

  void Start();  // takes all partitions, from what is committed
  void OnNodeUp(int node);
  // What the oldest record of some partition waits for; for the message of a test that does not
  // end.
  [[nodiscard]] std::string Waiting() const;

 private:
  void Step(const std::function<void()>& input);
  void Settle();
  void Act();
  void Deliver();
  void Arm();
  void Later(locking::Nanos wait, std::function<void()> what);
  void SendCalls();  // those whose batches are due
  void Call(CallBatch calls);
  void Cancel(std::uint64_t call);
  void AnswerUnsent(std::uint64_t call);
  void Write(std::unique_ptr<WriteBatch> batch);
  void LookUp(std::unique_ptr<LookupBatch> batch);
  void Publish(std::vector<DeadLetter> letters);
  void Commit(const std::vector<PartitionOffset>& offsets);
  void Take(const PartitionOffset& offset);  // the group has it now
  bool Dies(LifeStage stage);
  // How much longer a step takes in which the test lets the lease go to another.
  locking::Nanos LoseLease(LifeStage stage, std::string_view record_id);

  TestWorld& world_;
  const std::string name_;
  const AssignmentEpoch epoch_;
  const std::function<void()> die_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  WorkerCore core_;
  std::unique_ptr<Output> output_;
  WriteRetry retry_;
  std::vector<Offset> delivered_;
  std::vector<bool> told_end_;
  BatchQueue calls_;
  locking::Instant calls_at_ = locking::Instant::max();
  std::vector<std::uint64_t> cancelled_;
  locking::Instant armed_ = locking::Instant::max();
  bool paused_ = false;
};

}  // namespace fencepost::consumer
