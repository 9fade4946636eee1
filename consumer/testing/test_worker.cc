#include "consumer/testing/test_worker.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/runner.h"
#include "consumer/pipeline/batch_of.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kCommitTakes{1};
constexpr Millis kWriteTakes{2};
constexpr Millis kLookupTakes{1};
constexpr Millis kPublishTakes{2};

WorkerCoreOptions CoreOptions(const TestWorld& world) {
  WorkerCoreOptions options = WorkerCoreOptionsOf(world.options);
  options.creation = locking::StoreCreation::kNever;
  options.flow.traces = {};    // what it writes is to be foreseen
  options.flow.served = true;  // a test is of records, not of a service that is not there yet
  return options;
}

}  // namespace

TestWorker::TestWorker(TestWorld& world, std::string name, AssignmentEpoch epoch,
                       std::function<void()> die)
    : world_(world),
      name_(std::move(name)),
      epoch_(epoch),
      die_(std::move(die)),
      core_(
          CoreOptions(world), [&world] { return world.Random(); }, nullptr, &world),
      output_(world.output->Open(name_)),
      retry_(output_->max_records(), world.options.max_consecutive()),
      calls_(BatchOf(world.options.handler), world.options.handler.calls_per_second()) {
  calls_.ShareBy([&world](const HandlerCall& call) { return world.handler->SharedOf(call); });
}

TestWorker::~TestWorker() { *alive_ = false; }

void TestWorker::Start() {
  for (int node = 0; node < static_cast<int>(world_.nodes.size()); ++node) {
    if (world_.node_up[static_cast<std::size_t>(node)]) world_.Connect(node, core_.locks());
  }
  std::vector<AssignedPartition> assigned;
  for (std::size_t i = 0; i < world_.partitions.size(); ++i) {
    const TestPartition& partition = world_.partitions[i];
    delivered_.push_back(partition.committed);
    told_end_.push_back(false);
    assigned.push_back({.partition = static_cast<PartitionIndex>(i),
                        .where = partition.where,
                        .epoch = epoch_,
                        .start = partition.committed,
                        .failed = partition.failed});
  }
  Step([&] {
    core_.OnClusterId("test");
    core_.OnOutputState({PartPhase::kUp, ""}, world_.time.now());
    core_.OnKafkaState({PartPhase::kUp, ""}, world_.time.now());
    core_.OnAssigned(assigned, 0, core_.credit().SendAssignment(), world_.time.now());
  });
}

void TestWorker::OnNodeUp(int node) {
  Step([&] { world_.Connect(node, core_.locks()); });
}

std::string TestWorker::Waiting() const {
  std::string text = core_.flow().HandlerUnavailable();
  if (text.empty()) text = core_.flow().Refused();
  core_.flow().ForEachRecord([&](const InFlight& in) {
    if (in.stage() == Stage::kFinished || !text.empty()) return;
    text = fmt::format("{} is {}", SourceText(*in.where, in.record.offset), StageName(in.stage()));
  });
  return text.empty() ? "nothing is in flight" : text;
}

// --- one input after the other -----------------------------------------------------------------

void TestWorker::Step(const std::function<void()>& input) {
  const std::shared_ptr<bool> alive = alive_;
  if (!*alive) return;
  input();
  Settle();
  if (*alive) Deliver();
  if (*alive) Arm();
}

void TestWorker::Later(locking::Nanos wait, std::function<void()> what) {
  world_.time.After(wait, [this, alive = alive_, what = std::move(what)] {
    if (*alive) Step(what);
  });
}

// Lock nodes answer at once: what takes time in a test is what the test is about.
void TestWorker::Settle() {
  for (bool more = true; more && *alive_;) {
    more = false;
    for (int node = 0; node < static_cast<int>(world_.nodes.size()); ++node) {
      if (world_.node_up[static_cast<std::size_t>(node)]) {
        more = world_.Exchange(node, core_.locks()) || more;
      }
    }
    if (!core_.locks().events().empty()) {
      const std::size_t held = core_.locks().held();
      core_.OnLockEvents(world_.time.now());
      if (held > 0 && Dies(LifeStage::kLock)) return;
      more = true;
    }
    Act();
  }
}

void TestWorker::Act() {
  WorkerActions actions = core_.TakeActions();
  if (!actions.pause.empty()) paused_ = true;
  if (!actions.resume.empty()) paused_ = false;
  for (auto& lookup : actions.lookups) LookUp(std::move(lookup));
  for (HandlerCall& call : actions.calls) calls_.Add(std::move(call), world_.time.now().boot);
  for (const std::uint64_t call : actions.cancels) Cancel(call);
  for (const std::uint64_t call : actions.withdraws) {
    if (calls_.Remove(call)) AnswerUnsent(call);
  }
  SendCalls();
  for (auto& batch : actions.writes) Write(std::move(batch));
  if (!actions.dead_letters.empty()) Publish(std::move(actions.dead_letters));
  if (!actions.commit.empty()) {
    Later(kCommitTakes, [this, offsets = std::move(actions.commit)] { Commit(offsets); });
  }
  if (actions.failure && !world_.stopped) world_.stopped = std::move(actions.failure);
}

void TestWorker::Deliver() {
  if (paused_) return;
  std::vector<Record> records;
  std::vector<PartitionEnd> ends;
  std::size_t room = core_.credit().Records();
  for (std::size_t i = 0; i < world_.partitions.size(); ++i) {
    const auto end = static_cast<Offset>(world_.partitions[i].log.size());
    const auto index = static_cast<PartitionIndex>(i);
    for (; delivered_[i] < end && room > 0; --room) {
      records.push_back(world_.RecordAt(index, delivered_[i]++, epoch_));
    }
    if (delivered_[i] < end || told_end_[i]) continue;
    told_end_[i] = true;
    ends.push_back({index, epoch_, end});
  }
  if (records.empty() && ends.empty()) return;
  const DeliveryCredit::Load load = core_.credit().Send(records);
  Later(locking::Nanos(0),
        [this, records = std::make_shared<std::vector<Record>>(std::move(records)), load,
         ends = std::move(ends)] {
          if (!records->empty()) core_.OnRecords(std::move(*records), load, world_.time.now());
          if (!ends.empty()) core_.OnPartitionEnd(ends, world_.time.now());
        });
}

void TestWorker::Arm() {
  const locking::Instant next = std::min(core_.locks().NextTime(), core_.NextTime());
  if (next == locking::Instant::max() || next >= armed_) return;
  armed_ = next;
  const auto wait = std::max(locking::Nanos(0), next - world_.time.now().boot);
  Later(wait, [this] {
    armed_ = locking::Instant::max();
    const locking::Now now = world_.time.now();
    core_.locks().OnTime(now);
    core_.OnTime(now);
  });
}

// --- what the flow asks for --------------------------------------------------------------------

void TestWorker::SendCalls() {
  const locking::Instant now = world_.time.now().boot;
  while (calls_.Due(now)) {
    BatchQueue::Taken taken = calls_.Take(now);
    for (const HandlerCall& call : taken.late) AnswerUnsent(call.id);
    if (taken.calls.empty()) continue;
    calls_.OnSent(now);
    Call(std::move(taken.calls));
  }
  const locking::Instant next = calls_.Next(now);
  if (next == locking::Instant::max() || next >= calls_at_) return;
  calls_at_ = next;
  Later(next - now, [this] { calls_at_ = locking::Instant::max(); });  // and Act
}

void TestWorker::Cancel(std::uint64_t call) {
  cancelled_.push_back(call);
  if (calls_.Remove(call)) AnswerUnsent(call);
}

void TestWorker::AnswerUnsent(std::uint64_t call) {
  Later(locking::Nanos(0), [this, call] {
    std::erase(cancelled_, call);
    core_.OnHandled({.id = call, .result = Cancelled()}, world_.time.now());
  });
}

void TestWorker::Call(CallBatch calls) {
  ++world_.handler_calls;
  std::vector<locking::Nanos> longer;
  for (const HandlerCall& call : calls) {
    longer.push_back(LoseLease(LifeStage::kHandler, call.record_id));
  }
  auto answers = world_.handler->Handle(calls, world_.UnixNow());
  if (answers.empty()) return calls_.Halve(std::move(calls), world_.time.now().boot);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Later(answers[i].took + longer[i],
          [this, id = calls[i].id, result = std::move(answers[i].result)]() mutable {
            const bool cancelled = std::erase(cancelled_, id) > 0;
            if (!cancelled && result && Dies(LifeStage::kHandler)) return;
            core_.OnHandled({.id = id, .result = cancelled ? Cancelled() : std::move(result)},
                            world_.time.now());
          });
  }
}

void TestWorker::LookUp(std::unique_ptr<LookupBatch> batch) {
  Later(kLookupTakes, [this, batch = std::shared_ptr<LookupBatch>(std::move(batch))] {
    const auto entries = output_->Lookup(batch->ids);
    if (!entries) {
      world_.stopped = entries.error().error;
      return;
    }
    core_.OnLookedUp(*batch, *entries, world_.time.now());
  });
}

void TestWorker::Write(std::unique_ptr<WriteBatch> batch) {
  const auto shared = std::make_shared<std::unique_ptr<WriteBatch>>(std::move(batch));
  locking::Nanos longer{0};
  for (const WriteItem& item : (*shared)->request.items) {
    longer = std::max(longer, LoseLease(LifeStage::kOutput, item.record_id));
  }
  Later(kWriteTakes + longer, [this, shared] {
    const WriteRequest& request = (*shared)->request;
    auto outcomes = WriteAtOnce(*output_, retry_, request, (*shared)->id, (*shared)->answered);
    if (!outcomes) {
      world_.stopped = outcomes.error().error;
      return;
    }
    const bool written = std::ranges::none_of(
        *outcomes, [](const WriteOutcome& o) { return o.result >= WriteResult::kBadRecord; });
    if (written) {
      const bool transaction = FinalityOf(world_.options.output) == Finality::kTransaction;
      for (const WriteItem& item : request.items) {
        if (transaction && item.dead_letter != nullptr) Publish({*item.dead_letter});
      }
      for (const PartitionOffset& move : (*shared)->moves) Take(move);
    }
    if (!request.items.empty() && Dies(LifeStage::kOutput)) return;
    if (!(*shared)->moves.empty() && Dies(LifeStage::kCommit)) return;  // offsets and all
    core_.OnWritten(std::move(*shared), *outcomes, world_.time.now());
  });
}

void TestWorker::Publish(std::vector<DeadLetter> letters) {
  std::vector<std::uint64_t> ids;
  for (DeadLetter& letter : letters) {
    if (letter.id != 0) ids.push_back(letter.id);
    TestDeadLetter& kept = world_.dead_letters.emplace_back();
    if (letter.record.key) kept.key = std::string(*letter.record.key);
    if (letter.record.value) kept.value = std::string(*letter.record.value);
    kept.letter = std::move(letter);
  }
  Later(kPublishTakes,
        [this, ids = std::move(ids)] { core_.OnDeadLettered(ids, {}, world_.time.now()); });
}

void TestWorker::Take(const PartitionOffset& offset) {
  TestPartition& partition = world_.partitions[offset.partition];
  partition.committed = offset.next;
  partition.failed = offset.failed;
}

void TestWorker::Commit(const std::vector<PartitionOffset>& offsets) {
  for (const PartitionOffset& offset : offsets) Take(offset);
  if (Dies(LifeStage::kCommit)) return;
  core_.OnCommitted(offsets, world_.time.now().boot, world_.time.now());
}

// --- faults ------------------------------------------------------------------------------------

bool TestWorker::Dies(LifeStage stage) {
  if (!*alive_ || !world_.KillAfter(stage)) return false;
  *alive_ = false;
  die_();
  return true;
}

locking::Nanos TestWorker::LoseLease(LifeStage stage, std::string_view record_id) {
  const bool here = world_.LoseDuring(stage) ||
                    (stage == LifeStage::kHandler && world_.LoseDuring(LifeStage::kLock)) ||
                    (stage == LifeStage::kOutput && (world_.LoseDuring(LifeStage::kLock) ||
                                                     world_.LoseDuring(LifeStage::kCommit)));
  if (!here) return locking::Nanos(0);
  const PipelineOptions& options = world_.options;
  world_.Steal(LockName(options.name, LockedId(record_id, LockBlock(options))));
  return world_.options.lock.lock.ttl * 2;  // until the watchdog has seen it
}

}  // namespace fencepost::consumer
