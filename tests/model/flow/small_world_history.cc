#include "tests/model/flow/small_world_history.h"

#include <algorithm>

#include <fmt/format.h>

namespace fencepost::consumer::small_world {

using locking::Op;

FlowOptions World::Options() const {
  FlowOptions options = FlowBench::Options(rules_.order);
  if (rules_.block > 1) options.identity = {};
  options.identity.accept_replay_ids = rules_.replay;
  options.block = rules_.block;
  options.commit_interval = Millis(0);
  options.write_batch = rules_.write_batch;
  if (rules_.handler) options.handler.kind = CustomHandlerOptions{};
  options.dead_letters = true;
  options.max_consecutive = 0;
  options.on_bad_record = OnBad::kDeadLetter;
  return options;
}

// --- what happens ----------------------------------------------------------------------------

void World::Own(int index) {
  Worker& worker = at(index);
  worker.part = Part::kOwner;
  worker.epoch = ++epoch_;
  worker.next = committed_;
  worker.bench->Assign(0, committed_, epoch_);
}

// To the other one, if it lives. It hears first of what it has lost.
void World::HandOver(int from) {
  Worker& other = at(1 - from);
  if (other.bench == nullptr) return;
  if (other.part == Part::kLost) other.bench->Revoke(0, true);
  other.bench->drained.reset();
  Own(1 - from);
}

std::vector<Step> World::Enabled() const {
  std::vector<Step> steps;
  const auto may = [&steps](Kind kind, int worker, bool enabled) {
    if (enabled) steps.push_back({kind, static_cast<std::uint8_t>(worker)});
  };
  for (int index = 0; index < kWorkers; ++index) {
    const Worker& worker = at(index);
    if (worker.bench == nullptr) continue;
    const FlowBench& bench = *worker.bench;
    const bool reads = worker.part == Part::kOwner || worker.part == Part::kLost;
    may(Kind::kDeliver, index, reads && worker.next < End());
    may(Kind::kReplay, index, rules_.replay && index == 0 && !worker.replayed);
    may(Kind::kRound, index,
        std::ranges::any_of(bench.outbox(), [](const auto& ops) { return !ops.empty(); }));
    may(Kind::kHappen, index, worker.happened.size() < bench.writes.size());
    may(Kind::kAnswer, index, !worker.happened.empty());
    may(Kind::kLookUp, index, !bench.lookups.empty());
    may(Kind::kHandle, index, !bench.calls.empty());
    may(Kind::kAcknowledge, index, !bench.letters.empty());
    may(Kind::kCommit, index, worker.part == Part::kOwner && bench.Watermark(0) > committed_);
    may(Kind::kTick, index, !worker.ticked);
    may(Kind::kTell, index, worker.part == Part::kLost);
    const bool other = at(1 - index).bench != nullptr && at(1 - index).part == Part::kNone;
    may(Kind::kRevoke, index, left_.revokes > 0 && worker.part == Part::kOwner && other);
    may(Kind::kLose, index, left_.losses > 0 && worker.part == Part::kOwner && other);
    const bool survived = at(1 - index).bench != nullptr;
    may(Kind::kCrash, index, left_.crashes > 0 && worker.part != Part::kNone && survived);
    may(Kind::kUnanswered, index, left_.unanswered > 0 && !worker.happened.empty());
    may(Kind::kAborted, index,
        left_.aborted > 0 && worker.happened.empty() && !bench.writes.empty());
  }
  may(Kind::kOrphan, 0, !orphans_.empty());
  may(Kind::kHalfTtl, 0, left_.half_ttls > 0);
  may(Kind::kTtl, 0, left_.ttls > 0);
  return steps;
}

void World::Do(const Step& step) {
  Worker& worker = at(step.worker);
  FlowBench* const bench = worker.bench.get();
  switch (step.kind) {
    case Kind::kDeliver:
      bench->Deliver(0, {rules_.ids.at(static_cast<std::size_t>(worker.next++))});
      break;
    case Kind::kReplay:
      worker.replayed = true;
      bench->DeliverReplay(1, IdOf(0));
      break;
    case Kind::kRound:
      bench->Round();
      break;
    case Kind::kHappen:
      worker.happened.push_back(Happen(ItemsOf(*bench->writes.at(worker.happened.size()))));
      break;
    case Kind::kAnswer: {
      const std::vector<WriteOutcome> outcomes = std::move(worker.happened.front());
      worker.happened.pop_front();
      bench->Answer(outcomes);
      break;
    }
    case Kind::kUnanswered:  // the output asks again, and finds its own rows
      --left_.unanswered;
      worker.happened.pop_back();
      break;
    case Kind::kAborted:
      --left_.aborted;
      bench->Abort();
      break;
    case Kind::kLookUp: {
      const auto batch = std::move(bench->lookups.front());
      bench->lookups.pop_front();
      std::vector<std::optional<LedgerEntry>> entries;
      for (const std::string& id : batch->ids) {
        const auto row = rows_.find(id);
        entries.emplace_back();
        if (row == rows_.end()) continue;
        entries.back() = LedgerEntry{.token = row->second.token, .source = row->second.source};
      }
      found_.contended +=
          std::ranges::count_if(batch->contended, [](Nanos took) { return took > Nanos(0); });
      bench->flow.OnLookedUp(*batch, entries, shared_.now);
      bench->Act();
      break;
    }
    case Kind::kHandle:
      bench->Handle(bench->calls.front().record_id);
      break;
    case Kind::kAcknowledge:
      ++letters_[bench->letters.front().record_id];
      bench->Acknowledge();
      break;
    case Kind::kCommit:
      bench->flow.OnTime(shared_.now);
      bench->Act();
      break;
    case Kind::kTick:
      worker.ticked = true;
      bench->Tick();
      break;
    case Kind::kTell:
      bench->Revoke(0, true);
      break;
    case Kind::kOrphan:
      Happen(orphans_.front());
      orphans_.pop_front();
      break;
    case Kind::kHalfTtl:
    case Kind::kTtl: {
      const bool half = step.kind == Kind::kHalfTtl;
      --(half ? left_.half_ttls : left_.ttls);
      const Millis time = half ? shared_.lock.ttl / 2 : shared_.lock.ttl + Millis(1);
      shared_.now.boot += time;
      shared_.now.wall += time;
      for (Worker& one : workers_) Age(one);
      break;
    }
    case Kind::kRevoke:
      --left_.revokes;
      worker.part = Part::kRevoking;
      bench->Revoke(0);
      break;
    case Kind::kLose:
      --left_.losses;
      worker.part = Part::kLost;
      HandOver(step.worker);
      break;
    case Kind::kCrash:
      --left_.crashes;
      for (std::size_t i = worker.happened.size(); i < bench->writes.size(); ++i) {
        orphans_.push_back(ItemsOf(*bench->writes[i]));
      }
      if (worker.part == Part::kOwner || worker.part == Part::kRevoking) HandOver(step.worker);
      worker = {};
      break;
  }
  for (int index = 0; index < kWorkers; ++index) AfterStep(index);
  Check();
}

// Time has passed. One that has nothing to do hears of it at once.
void World::Age(Worker& worker) {
  if (worker.bench == nullptr) return;
  FlowBench& bench = *worker.bench;
  worker.ticked = false;
  bench.flow.ForEachRecord([&](const InFlight& in) {
    const bool over = Leased(in) && !bench.core.Valid(in.unit->lock(), shared_.now);
    if (over) worker.ended.insert(in.unit->token());
  });
  if (bench.flow.in_flight() > 0 || worker.part != Part::kNone) return;
  worker.ticked = true;
  bench.Tick();
}

// What the worker asks for goes out, and the partition goes on when it is drained.
void World::AfterStep(int index) {
  Worker& worker = at(index);
  if (worker.bench == nullptr) return;
  FlowBench& bench = *worker.bench;
  if (bench.stop) Break("a worker ends: " + bench.stop->what);
  if (left_.losses + left_.crashes == 0 && worker.part == Part::kOwner) {  // nobody can tell when
    bench.flow.OnTime(shared_.now);
    bench.Act();
  }
  Commit(index, bench.TakeCommits());
  if (bench.drained) {
    const bool lost = worker.part == Part::kLost;
    Commit(index, *std::exchange(bench.drained, std::nullopt));
    worker.part = Part::kNone;
    if (!lost) HandOver(index);
  }
  bench.Post();
  for (const auto& ops : bench.outbox()) {
    for (const Op& op : ops) worker.nonces.insert(op.nonce);
  }
}

// --- the output ------------------------------------------------------------------------------

std::vector<Item> World::ItemsOf(const WriteBatch& batch) {
  std::vector<Item> items;
  for (const WriteItem& item : batch.request.items) {
    items.push_back({std::string(item.record_id), SourceText(*item.where, item.record->offset),
                     item.record->offset, item.token, item.chain});
  }
  return items;
}

std::vector<WriteOutcome> World::Happen(const std::vector<Item>& items) {
  std::vector<WriteOutcome> outcomes;
  std::set<std::uint64_t> held;
  for (const Item& item : items) {
    WriteOutcome& outcome = outcomes.emplace_back();
    if (held.contains(item.chain)) {
      outcome.result = WriteResult::kNotWritten;
    } else if (rules_.refused && *rules_.refused == item.offset) {
      outcome = {.result = WriteResult::kBadRecord, .detail = "no", .shown = "no"};
      if (item.chain != 0) held.insert(item.chain);
    } else if (const auto [row, made] = rows_.try_emplace(item.id); made) {
      row->second = {1, item.source, item.token};
      ++found_.written;
    } else {
      ++found_.found;
      const bool own = row->second.source == item.source;
      const bool fenced = row->second.token > item.token;
      outcome.result = own      ? WriteResult::kOwnEarlier
                       : fenced ? WriteResult::kFenced
                                : WriteResult::kDuplicate;
    }
  }
  return outcomes;
}

bool World::Final(Offset offset) const {
  return rows_.contains(IdOf(offset)) || letters_.contains(IdOf(offset));
}

std::string World::IdOf(Offset offset) const {
  if (rules_.block > 1) return fmt::format("cluster/t/0/{}", offset);
  return rules_.ids.at(static_cast<std::size_t>(offset));
}

void World::Commit(int index, const std::vector<PartitionOffset>& offsets) {
  for (const PartitionOffset& offset : offsets) {
    if (offset.partition != 0) continue;
    const bool current = offset.epoch == epoch_;
    if (at(index).bench != nullptr)
      at(index).bench->flow.OnCommitted(
          {offset}, current ? std::optional(shared_.now.boot) : std::nullopt, shared_.now);
    if (!current) continue;
    for (Offset passed = 0; passed < offset.next; ++passed) {
      if (!Final(passed)) Break(fmt::format("offset {} is passed and has no effect", passed));
    }
    committed_ = std::max(committed_, offset.next);
  }
}

}  // namespace fencepost::consumer::small_world
