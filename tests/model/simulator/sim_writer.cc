#include "tests/model/simulator/sim_writer.h"

#include <algorithm>
#include <utility>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using consumer::WriteOutcome;

constexpr Millis kFirstBackoff{50};
constexpr Millis kMaxBackoff{5000};

}  // namespace

void SimWriter::Write(std::unique_ptr<consumer::WriteBatch> batch) {
  queue_.push_back(std::move(batch));
  Next();
}

void SimWriter::Next() {
  if (batch_ != nullptr || queue_.empty()) return;
  batch_ = std::move(queue_.front());
  queue_.pop_front();
  items_.clear();
  for (const consumer::WriteItem& item : batch_->request.items) {
    items_.push_back({std::string(item.record_id),
                      consumer::SourceText(*item.where, item.record->offset), item.token,
                      item.crc});
  }
  world_.checks.OnBatch(items_);
  backoff_ = kFirstBackoff;
  Attempt();
}

// The worker may stand still before it sends; once sent, the transaction goes on without it.
void SimWriter::Attempt() {
  const int attempt = ++attempt_;
  worker_.process().Later(Process::kOutput, world_.HostDelay(), [this, attempt] {
    World& world = world_;
    Process& process = worker_.process();
    const bool trouble = world.FaultsOn() && world.random.Chance(world.plan.output_faults);
    const bool late = trouble && world.random.Chance(300);
    const bool never = trouble && !late && world.random.Chance(400);
    const Nanos limit = world.plan.write_takes + Millis(200);
    const Nanos takes = late ? world.random.Time(limit, limit * 4)
                             : world.random.Time(microseconds(300), world.plan.write_takes);
    world.time.In(takes, [this, &world, &process, life = process.incarnation(), attempt, never,
                          trouble, items = items_] {
      if (never) return;
      const std::vector<WriteOutcome> outcomes = world.ledger.Write(items);
      world.Note("w{} transaction of {} records is committed", process.index, items.size());
      if (trouble || process.incarnation() != life) return;
      process.Later(Process::kOutput, world.NetDelay(),
                    [this, attempt, outcomes] { OnAnswer(attempt, outcomes); });
    });
    if (!trouble) return;
    process.Later(Process::kOutput, limit, [this, attempt] { OnUnavailable(attempt); });
  });
}

void SimWriter::OnAnswer(int attempt, const std::vector<WriteOutcome>& outcomes) {
  if (attempt != attempt_ || batch_ == nullptr) return;
  worker_.flow().OnWritten(std::move(batch_), outcomes, worker_.process().now());
  batch_ = nullptr;
  worker_.Act();
  Next();
}

void SimWriter::OnUnavailable(int attempt) {
  if (attempt != attempt_) return;
  ++attempt_;
  worker_.process().Later(Process::kOutput, backoff_, [this] { Attempt(); });
  backoff_ = std::min<Nanos>(backoff_ * 2, kMaxBackoff);
}

}  // namespace fencepost::simulator
