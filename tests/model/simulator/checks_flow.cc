// What the flow may ask for, and what became of the records.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "consumer/record/position_id.h"
#include "tests/model/simulator/checks.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::Finality;
using consumer::InFlight;
using consumer::Offset;
using consumer::PartitionOffset;
using consumer::Stage;

// Before a lease there are only records that are secured, or whose first round is still out. A
// lease that its own clock has ended takes those behind it along as soon as the core is asked
// again.
void Checks::OnStep(SimWorker& worker) {
  const locking::Now now = worker.process().now();
  worker.flow().ForEachRecord([&](const InFlight& in) {
    if (Leased(in)) CheckCovered(in);
    const bool holds = Leased(in) && MayGiveBack(in.stage());
    if (!holds || !worker.locks().Valid(in.unit->lock(), now)) return;
    const InFlight* gap = nullptr;
    for (const InFlight* at = in.chain_before; at != nullptr; at = at->chain_before) {
      const bool secured = InLeasedPrefix(at->stage());
      const bool soon = LeaseMayArriveSoon(*at);
      if (Leased(*at) && !worker.locks().Valid(at->unit->lock(), now)) return;
      if (!secured && !(soon && in.stage() == Stage::kGranted)) gap = at;
      // It is looked at itself, and as strictly.
      const bool strict = MayGiveBack(at->stage()) && at->stage() != Stage::kGranted;
      if (gap == nullptr && Leased(*at) && strict) return;
    }
    if (gap == nullptr) return;
    world_.Violate("15",
                   fmt::format("w{} holds {} behind {} in stage {}", worker.process().index,
                               in.identity.id, gap->identity.id, static_cast<int>(gap->stage())));
  });
}

// A block's lease is that of its own offsets.
void Checks::CheckCovered(const InFlight& in) {
  if (!in.unit->shared()) return;
  const auto position = consumer::ParsePositionId(in.identity.id);
  const std::string name =
      consumer::LockName(kPipeline, consumer::BlockName(*position, world_.plan.flow.block));
  if (in.unit->name() == name) return;
  world_.Violate("18", fmt::format("{} is worked on under {}", in.identity.id, in.unit->name()));
}

bool Checks::LeaseIsValid(SimWorker& worker, const InFlight& in) const {
  const bool may_proceed = world_.plan.on_unavailable == consumer::OnUnavailable::kProceed;
  return FoundDone(in) || (may_proceed && Has(in, consumer::Lease::kUnlocked)) ||
         (Leased(in) && worker.locks().Valid(in.unit->lock(), worker.process().now()));
}

// --- asked for ---------------------------------------------------------------------------------

void Checks::OnTold(const consumer::AssignedPartition& assigned) {
  for (const consumer::FailedRecord& one : assigned.failed) {
    world_.Count("failures taken over");
    told_[{assigned.epoch, assigned.partition}][one.offset] = one.attempts;
  }
}

void Checks::OnCall(SimWorker& worker, const consumer::HandlerCall& call) {
  const int index = worker.process().index;
  bool found = false;
  worker.flow().ForEachRecord([&](const InFlight& in) {
    if (in.call != call.id || in.stage() != Stage::kHandling) return;
    found = true;
    if (LeaseIsValid(worker, in)) return;
    world_.Violate("18", fmt::format("w{} handles {} without a lease", index, call.record_id));
  });
  if (!found) world_.Violate("18", fmt::format("w{} handles nothing it has", index));
  const auto& told = told_[{call.record.epoch, call.record.partition}];
  const auto before = told.find(call.record.offset);
  if (before != told.end() && call.attempt <= before->second) {
    world_.Violate("22", fmt::format("w{} calls {} for attempt {} after {}", index, call.record_id,
                                     call.attempt, before->second));
  }
  const SimHandler::Out mine = worker.handler().Describe(call);
  See({.kind = Seen::Kind::kCall,
       .source = mine.source,
       .id = KnownId(call.record_id, mine.source),
       .token = call.token},
      {index, worker.process().incarnation(), call.record.epoch, world_.time.now()});
  for (const auto& [id, other] : worker.handler().out()) {
    const bool same = other.source == mine.source && other.epoch == mine.epoch;
    if (same || (!mine.chain.empty() && other.chain == mine.chain)) {
      world_.Violate("18", fmt::format("w{} handles {} while the call of {} is out", index,
                                       mine.source, other.source));
    }
  }
}

void Checks::OnLetter(SimWorker& worker, const consumer::DeadLetter& letter) {
  bool found = false;
  worker.flow().ForEachRecord([&](const InFlight& in) {
    if (in.Reference() != letter.id || in.stage() != Stage::kPublishingDeadLetter) return;
    found = in.without_id || LeaseIsValid(worker, in);
  });
  if (found) return;
  world_.Violate(
      "19", fmt::format("w{} buries {} without a lease", worker.process().index, letter.record_id));
}

void Checks::OnBatch(const consumer::WriteRequest& request) {
  const bool handler = world_.plan.flow.handler.any();
  std::set<std::string_view> ids;
  for (const consumer::WriteItem& item : request.items) {
    const bool letter = item.dead_letter != nullptr;
    const bool with_letters =
        (world_.plan.flow.finality == Finality::kTransaction && !world_.plan.flow.letters_apart) ||
        (world_.plan.by_position && world_.plan.flow.finality == Finality::kLedger);
    if (letter && !with_letters) {
      world_.Violate("19", fmt::format("{} is dead and written", item.record_id));
    }
    if (!letter && handler != (item.values != nullptr)) {
      world_.Violate("18", fmt::format("{} is written, but was not handled", item.record_id));
    }
    if (item.record_id.empty() || ids.insert(item.record_id).second) continue;
    world_.Violate("17", fmt::format("{} is twice in one transaction", item.record_id));
  }
}

// --- happened ----------------------------------------------------------------------------------

// A window (PROTOCOL.md): its worker was stalled, and its lease had ended by then.
void Checks::NoteLateEffect(const std::string& id, const By& by) {
  if (!world_.Lives(by.worker, by.life)) return;
  SimWorker& worker = *world_.worker(by.worker);
  worker.flow().ForEachRecord([&](const InFlight& in) {
    const bool late = in.stage() == Stage::kWriting && !LeaseIsValid(worker, in);
    if (late && in.identity.id == id) lost_names_.insert(id);
  });
}

void Checks::OnEffect(const std::string& id, const std::string& source, const By& by,
                      bool lost_to_newer) {
  if (world_.plan.flow.finality == Finality::kWrite) NoteLateEffect(id, by);
  See({.kind = Seen::Kind::kEffect,
       .source = source,
       .id = KnownId(id, source),
       .lost_to_newer = lost_to_newer},
      by);
  world_.effects.Add(id, source, by);
}

void Checks::OnPublished(const std::string& source, const By& by) {
  See({.kind = Seen::Kind::kLetter, .source = source}, by);
  world_.effects.AddLetter(source, by);
}

void Checks::OnSentRecord(const LogRecord& record, const std::string& chain, int partition,
                          int log) {
  history_.Send({.source = record.source,
                 .id = KnownId(record.record_id, record.source),
                 .chain = chain,
                 .partition = partition,
                 .offset = record.offset,
                 .makes_no_row = world_.MakesNoRow(record.record_id, record.value),
                 .log = log,
                 .row = world_.plan.flow.finality == Finality::kLedger ? record.key : "",
                 .made = record.made.count()});
}

// By position, two records at the same place of two logs have one id for the workers.
std::string Checks::KnownId(const std::string& id, const std::string& source) const {
  return world_.plan.by_position && world_.plan.Replaces() ? source : id;
}

void Checks::See(Seen seen, const By& by) {
  seen.worker = by.worker;
  seen.life = by.life;
  seen.assignment = by.epoch;
  seen.at = by.at.count();
  Complain(history_.See(std::move(seen)));
}

// By the invariants of PROTOCOL.md.
void Checks::Complain(const std::optional<Complaint>& complaint) {
  if (!complaint) return;
  // A wall clock that steps back by more than max_skew may take the tokens along (TokenClock).
  if (complaint->what == "token" && world_.plan.Has(Fault::kWorkerClocks)) return;
  const bool transactions = OnTransactions(history_.promise());
  std::string_view invariant = "17";
  if (complaint->what == "doubled" && transactions) invariant = "20";
  if (complaint->what == "both") invariant = "19";
  if (complaint->what == "order") invariant = "21";
  if (complaint->what == "past") invariant = "fence";
  if (complaint->what == "early") invariant = "16";
  if (complaint->what == "token") invariant = "2";
  if (complaint->what == "silent" || complaint->what == "alarm") invariant = "lost commits";
  world_.Violate(std::string(invariant), complaint->text);
}

// Whatever it holds lies between where its partition was and where it goes on: so it is neither
// there already nor ever read again.
void Checks::OnTransaction(const By& by, const std::vector<Produced>& items,
                           const std::vector<PartitionOffset>& offsets) {
  for (const Produced& item : items) {
    const auto move = std::find_if(
        offsets.begin(), offsets.end(),
        [&](const PartitionOffset& offset) { return offset.partition == item.partition; });
    const Offset committed = world_.broker.logs[item.partition].committed;
    const bool once = move != offsets.end() && item.offset >= committed && item.offset < move->next;
    if (!once) {
      world_.Violate("20",
                     fmt::format("{} is in a transaction that does not move past it", item.source));
    }
    if (item.letter) {
      OnPublished(item.source, by);
    } else if (item.no_output) {
      OnNoOutput(item.id, item.source);
    } else {
      OnEffect(item.id, item.source, by);
    }
  }
}

void Checks::OnCommit(int partition, Offset next) {
  See({.kind = Seen::Kind::kOffset, .partition = partition, .next = next}, {});
}

// --- the end -----------------------------------------------------------------------------------

void Checks::AtTheEnd() {
  Complain(history_.AtTheEnd());
  for (const Log& log : world_.broker.logs) {
    for (const LogRecord& record : log.records) {
      const bool dead = !world_.effects.Letters(record.source).empty();
      const bool took = !world_.effects.From(record.source).empty();
      if (dead && took) world_.Count("dead letter and effect");
    }
  }
  for (const auto& [id, effects] : world_.effects.all()) {
    if (effects.size() > 1) CheckRepeats(id, effects);
  }
  CheckNothingLeft();
}

// Without a ledger each needs its reason. In transactions it is the positions that count, and
// those were looked at.
void Checks::CheckRepeats(const std::string& id, const std::vector<By>& effects) {
  const bool marks = world_.plan.flow.finality == Finality::kWrite;
  world_.Count(marks ? "effects repeated" : "ids repeated in transactions",
               static_cast<int>(effects.size()) - 1);
  if (!marks) return;
  for (std::size_t i = 1; i < effects.size(); ++i) {
    const By& before = effects[i - 1];
    const By& again = effects[i];
    const auto majority = majority_at_.find(id);
    const bool marked = majority != majority_at_.end() && majority->second < again.at;
    const Nanos remembered = marked ? again.at - marked_at_.at(id) : Nanos(0);
    const bool forgotten = forgot_ || remembered > Nanos(world_.plan.flow.remember_done) * 99 / 100;
    const bool died =
        !world_.Lives(before.worker, before.life) || !world_.Lives(again.worker, again.life);
    // The mark is not awaited: it may be on its way, or find too few nodes.
    const bool unmarked = !marked && (!before.SameAssignment(again) || world_.plan.faults.any());
    if (forgotten || died || unmarked || lost_names_.contains(id)) continue;
    world_.Violate("17", fmt::format("{} took effect again, for no reason", id));
  }
}

}  // namespace fencepost::simulator
