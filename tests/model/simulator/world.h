// One run of the simulator: nodes, Kafka, an output, workers, trouble, and the checks, in virtual
// time, all from one seed.
//
// The workers are the shipped ones (LockCore, Flow). Trouble ends at plan.faults_end; then
// everything must come to its end by itself: no lag, every id's effect there once, nothing left
// held.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/model/simulator/broker.h"
#include "tests/model/simulator/checks.h"
#include "tests/model/simulator/coverage.h"
#include "tests/model/simulator/effects.h"
#include "tests/model/simulator/faults.h"
#include "tests/model/simulator/ledger.h"
#include "tests/model/simulator/operator.h"
#include "tests/model/simulator/plan.h"
#include "tests/model/simulator/sim_worker.h"

namespace fencepost::simulator {

struct Violation {
  std::string invariant;  // its number in PROTOCOL.md, or "progress"
  std::string text;
};

class World {
 public:
  World(Plan plan, bool tracing);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Nothing when all went well.
  std::optional<Violation> Run();
  // The last things that happened; only when tracing.
  [[nodiscard]] const std::deque<std::string>& trace() const { return trace_; }

  void Violate(std::string invariant, std::string text);
  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) {
    if (tracing_) Keep(fmt::format(format, std::forward<Args>(args)...));
  }

  // What happened in this run, and how often.
  void Count(std::string_view what, int by = 1) {
    const auto found = counts_.find(what);
    if (found != counts_.end()) {
      found->second += by;
    } else {
      counts_.emplace(what, by);
    }
  }
  [[nodiscard]] const Counts& counts() const { return counts_; }

  // --- the weather -----------------------------------------------------------------------------
  [[nodiscard]] bool FaultsOn() const { return time.now() < plan.faults_end; }
  Nanos NetDelay();
  Nanos HostDelay() { return random.Time(Nanos(0), microseconds(30)); }
  void DrawFate(Exchange& exchange);
  // Which effect of this record the output does not take (LedgerItem::refused).
  [[nodiscard]] std::size_t Refuses(const std::string& source) const;
  // The handler makes no row of this content.
  [[nodiscard]] bool MakesNoRow(std::string_view record_id, std::string_view value) const;
  // Whether a fault befalls this one, of a thousand so many.
  bool Strikes(Fault fault, int in_a_thousand) {
    if (in_a_thousand == 0 || !FaultsOn() || !random.Chance(in_a_thousand)) return false;
    Strike(fault);
    return true;
  }
  void Strike(Fault fault) { coverage_.Strike(*this, fault); }
  [[nodiscard]] const Faults& faults() const { return faults_; }

  // --- who there is ----------------------------------------------------------------------------
  // That there is or was.
  [[nodiscard]] const std::vector<std::unique_ptr<SimNode>>& nodes() const { return nodes_; }
  // The one at this place of the lists, by now.
  SimNode& NodeAt(int place) { return *places_[static_cast<std::size_t>(place)]; }
  SimNode& Replace(int place);
  Process& process(int index) { return *processes_[static_cast<std::size_t>(index)]; }
  // Null while it is dead.
  SimWorker* worker(int index) { return workers_[static_cast<std::size_t>(index)].get(); }
  [[nodiscard]] bool Lives(int index, int life) const;
  void ToConsumer(int index, int life, std::function<void(SimConsumer&)> message);
  void Raise(int index);           // a worker starts
  void Bury(int index, int life);  // it has ended, or was killed
  // It ends by itself, with these last words.
  void OnFailure(SimWorker& worker, const fencepost::Error& error);
  void OnTroubleEnded() {
    if (plan.Replaces()) operator_.RestartAll();
  }
  // dead_letter.max_consecutive of the workers that start now.
  [[nodiscard]] std::size_t MostInARow() const { return lifted_ ? 0 : plan.flow.max_consecutive; }
  void NoticeSilence(int index);  // its session runs out unless it comes back before
  std::string FreshRunId();

  const Plan plan;
  Random random;
  Timeline time;
  Ledger ledger;
  Effects effects;
  Checks checks;
  Broker broker;

 private:
  void Keep(std::string line);
  void CreateStore();
  void NoteWhatStands();
  void LookAfterWithheld();
  void CheckCalm();
  [[nodiscard]] bool Settled() const;
  [[nodiscard]] bool EachIsRead() const;  // by a worker that knows which log it is

  const bool tracing_;
  bool lifted_ = false;
  std::deque<std::string> trace_;
  Counts counts_;
  std::optional<Violation> violation_;
  int next_run_id_ = 1;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<SimNode*> places_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  Faults faults_;
  Operator operator_;
  Coverage coverage_;
};

}  // namespace fencepost::simulator
