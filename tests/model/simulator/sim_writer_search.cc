// SimWriter: which records of a transaction the database refuses is searched behind savepoints
// (WriteRequest::apart).
#include <algorithm>
#include <utility>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/sim_writer.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::WriteOutcome;
using consumer::WriteResult;

// Each of its questions waits for an answer, so it ends with its worker, or with the connection.
void SimWriter::Search(int attempt, const std::vector<std::size_t>& places) {
  using End = SimOutput::Terms::End;
  if (attempt != attempt_) return;
  if (worker_.process().now().boot >= batch_->until) return Go();  // it was stalled
  World& world = world_;
  Process& process = worker_.process();
  const Nanos limit = world.plan.write_takes + Millis(200);
  if (process.CutOff()) {
    return process.Later(Process::kOutput, limit, [this, attempt] { OnNoAnswer(attempt); });
  }
  SimOutput::Terms terms{.late = world.time.now() + world.plan.LongestWrite(),
                         .by = {process.index, process.incarnation(), 0, Nanos(0)}};
  if (world.Strikes(Fault::kUnanswered, world.plan.output_faults)) {
    terms.end = static_cast<End>(1 + world.random.Below(3));
  }
  process.Later(Process::kOutput, world.random.Time(microseconds(300), world.plan.write_takes),
                [this, attempt, places, terms] { SearchNow(attempt, places, terms); });
}

void SimWriter::SearchNow(int attempt, const std::vector<std::size_t>& places,
                          SimOutput::Terms terms) {
  if (attempt != attempt_) return;
  Process& process = worker_.process();
  const Nanos delay = world_.NetDelay();
  if (session_ != world_.ledger.session()) {
    return process.Later(Process::kOutput, delay, [this, attempt] { OnBroken(attempt); });
  }
  terms.late = std::max(terms.late - world_.random.Time(Nanos(0), world_.plan.LongestWrite() / 2),
                        world_.time.now());
  terms.mood = StruckMood(world_);
  const consumer::WriteRequest request{
      .items = ItemsAt(places), .offsets = {}, .epoch = batch_->request.epoch, .apart = true};
  auto outcomes = output_.Search(request, terms);
  world_.Count("searches");
  if (outcomes) {
    const auto bad = std::ranges::count(*outcomes, WriteResult::kBadRecord, &WriteOutcome::result);
    if (bad > 1) world_.Count("searches that found several");
    Acknowledge(request.items, *outcomes);
    return process.Later(Process::kOutput, delay,
                         [this, attempt, session = session_, found = std::move(*outcomes)] {
                           if (attempt != attempt_) return;
                           CheckUse(session);
                           retry_.OnWritten(found);
                           Go();
                         });
  }
  const consumer::OutputError error = std::move(outcomes.error());
  if (error.error.code == SimOutput::kUnanswered) {
    world_.Count("searches unanswered");
    return process.Later(Process::kOutput, delay + Millis(200),
                         [this, attempt] { OnNoAnswer(attempt); });
  }
  if (error.fatal || !error.later.empty()) return OnRefusal(error);
  world_.Count("searches that failed");
  process.Later(Process::kOutput, delay, [this, attempt, error] {
    if (attempt == attempt_) Fail(error);
  });
}

}  // namespace fencepost::simulator
