#include "tests/model/flow/flow_bench.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "locking/base/check.h"
#include "tests/support/sentinel_node.h"

namespace fencepost::consumer {

using locking::Op;
using locking::Reply;

SharedWorld::SharedWorld(int count) {
  lock.contact = locking::Contact::kAll;  // tests look at any one node
  for (int i = 0; i < count; ++i) {
    nodes.emplace_back(std::string(locking::kRunIdSize, static_cast<char>('a' + i)));
    const auto sentinel = locking::CompleteSentinel(nodes.back().run_id(), i, count, lock.max_ttl);
    nodes.back().ApplySentinelWrite({std::nullopt, sentinel.Encode(), std::nullopt}, now.wall);
  }
}

void SharedWorld::Steal(const std::string& name) {
  for (locking::NodeModel& node : nodes) {
    Op op{.kind = locking::OpKind::kAbort, .name = name, .nonce = node.Look(name, now.wall).nonce};
    node.Apply(op.kind, std::span(&op, 1), lock, now.wall, nullptr);
    op = {.kind = locking::OpKind::kAcquire,
          .name = name,
          .token = locking::Token::AtWall(now.wall + Millis(1)),
          .nonce = {{1, 2}},
          .ttl = lock.ttl};
    node.Apply(op.kind, std::span(&op, 1), lock, now.wall, nullptr);
  }
}

void SharedWorld::MarkDone(const std::string& id, locking::ContentCrc crc, std::size_t at) {
  const std::string name = LockName("p", id);
  const locking::Op op{.kind = locking::OpKind::kDone,
                       .name = name,
                       .token = locking::Token::AtWall(now.wall),
                       .ttl = Millis(60'000),
                       .crc = crc};
  for (std::size_t node = 0; node < at; ++node)
    nodes[node].Apply(op.kind, std::span(&op, 1), lock, now.wall, nullptr);
}

void SharedWorld::WriteRow(const std::string& record) { WriteRow(record, FlowBench::Options()); }

void SharedWorld::WriteRow(const std::string& record, const FlowOptions& options) {
  SharedWorld elsewhere;
  FlowBench other(elsewhere, options);
  other.Assign(0);
  other.Deliver(0, {record});
  other.WriteAll();
  ledger = elsewhere.ledger;
}

FlowOptions FlowBench::Options(Order order) {
  FlowOptions options;
  options.pipeline = "p";
  options.identity.record_id = {{Selector::Kind::kHeader, "id", false}};
  options.order = order;
  options.lock_wait = Millis(2000);
  return options;
}

FlowOptions FlowBench::Handling(Order order) {
  FlowOptions options = Options(order);
  options.handler.kind = CustomHandlerOptions{};
  options.dead_letters = true;
  options.on_bad_record = options.on_id_conflict = OnBad::kDeadLetter;
  return options;
}

FlowBench::FlowBench(SharedWorld& shared, const FlowOptions& options, std::uint64_t seed)
    : world(shared),
      random(seed << 32),
      core(
          static_cast<int>(shared.nodes.size()), shared.lock, locking::StoreCreation::kQuarantined,
          [this] { return random += 0x9e3779b97f4a7c15ULL; }, nullptr),
      flow(
          options, &core, [this] { return random += 0x9e3779b97f4a7c15ULL; }, &told),
      finality_(options.finality),
      outbox_(shared.nodes.size()) {
  for (int node = 0; node < static_cast<int>(world.nodes.size()); ++node) Connect(node);
  flow.OnClusterId("cluster");
}

void FlowBench::Connect(int node) {
  const locking::NodeModel& model = world.nodes[static_cast<std::size_t>(node)];
  core.store().OnConnected(node, locking::MemberInfo(model.run_id(), model.sentinel(), world.now),
                           world.now);
  core.OnTime(world.now);
}

void FlowBench::Assign(PartitionIndex partition, Offset start, AssignmentEpoch epoch,
                       std::size_t late, std::vector<FailedRecord> failed) {
  sources_[partition] = {epoch, start};
  const TopicPartition where{"t", static_cast<std::int32_t>(partition)};
  flow.OnAssigned({{partition, where, epoch, start, std::move(failed)}}, world.now, late);
  Take();
}

void FlowBench::Deliver(PartitionIndex partition, const std::vector<std::string>& records) {
  Source& source = sources_[partition];
  std::vector<Record> delivered;
  for (const std::string& text : records) {
    const bool filtered = text.starts_with('!');
    const bool unclear = text.starts_with('?');
    const std::size_t mark = text.find_first_of("@=");
    const std::string& id = texts_.emplace_back(text.substr(filtered || unclear ? 1 : 0, mark));
    Record& record = delivered.emplace_back();
    record.filtered = filtered;
    if (unclear) record.problem = "when: no JSON";
    record.partition = partition;
    record.epoch = source.epoch;
    record.offset = source.next++;
    if (!id.empty()) record.headers.push_back({"id", id});
    if (!traceparent.empty()) {
      record.headers.push_back({kTraceparent, texts_.emplace_back(traceparent)});
    }
    if (mark == std::string::npos) continue;
    const std::string& rest = texts_.emplace_back(text.substr(mark + 1));
    (text[mark] == '@' ? record.key : record.value) = rest;
  }
  flow.OnRecords(std::move(delivered), world.now);
  Take();
}

void FlowBench::DeliverReplay(PartitionIndex partition, const std::string& id) {
  Source& source = sources_[partition];
  Record record;
  record.partition = partition;
  record.epoch = source.epoch;
  record.offset = source.next++;
  record.headers.push_back({"fencepost-record-id", texts_.emplace_back(id)});
  std::vector<Record> records;
  records.push_back(std::move(record));
  flow.OnRecords(std::move(records), world.now);
  Take();
}

void FlowBench::End(PartitionIndex partition, Offset end) {
  Source& source = sources_[partition];
  source.next = std::max(source.next, end);
  flow.OnPartitionEnd({{partition, source.epoch, end}}, world.now);
  Take();
}

void FlowBench::Revoke(PartitionIndex partition, bool lost) {
  drained.reset();
  flow.OnRevoked({partition}, lost, world.now.boot + Millis(1000), world.now);
  Take();
}

void FlowBench::Act() {
  FlowActions actions = std::exchange(flow.actions(), FlowActions());
  paused.insert(paused.end(), actions.pause.begin(), actions.pause.end());
  resumed.insert(resumed.end(), actions.resume.begin(), actions.resume.end());
  commits_.insert(commits_.end(), actions.commit.begin(), actions.commit.end());
  for (auto& batch : actions.writes) writes.push_back(std::move(batch));
  for (auto& batch : actions.lookups) lookups.push_back(std::move(batch));
  for (auto& letter : actions.dead_letters) letters.push_back(std::move(letter));
  for (const std::uint64_t id : actions.dropped_letters) {
    std::erase_if(letters, [id](const DeadLetter& letter) { return letter.id == id; });
    dropped_letters.push_back(id);
  }
  for (auto& call : actions.calls) calls.push_back(std::move(call));
  cancels.insert(cancels.end(), actions.cancels.begin(), actions.cancels.end());
  if (actions.drained) drained = std::move(actions.drained);
  if (actions.prunable) prunable = std::move(actions.prunable);
  if (actions.stop) stop = std::move(actions.stop);
}

bool FlowBench::Post() {
  bool probed = false;
  for (int node = 0; node < static_cast<int>(world.nodes.size()); ++node) {
    if (core.store().TakeCommand(node)) {  // a probe
      Connect(node);
      probed = true;
    }
    std::vector<Op>& ops = outbox_[static_cast<std::size_t>(node)];
    if (ops.empty()) core.TakeBatch(node, ops);
  }
  return probed;
}

bool FlowBench::Exchange(int node) {
  const std::vector<Op> ops = std::exchange(outbox_[static_cast<std::size_t>(node)], {});
  if (ops.empty()) return false;
  std::vector<Reply> replies;
  locking::CallHeader header;
  for (const Op& op : ops) {
    ++operations_[op.kind];
    world.nodes[static_cast<std::size_t>(node)].Apply(
        op.kind, std::span(&op, 1), world.lock, world.now.wall, world.now.wall, &header, replies);
  }
  core.store().OnCall(node, {world.now.boot, world.now.boot, header.node_time}, world.now);
  core.OnReplies(node, replies, world.now);
  return true;
}

bool FlowBench::Round() {
  bool any = Post();
  for (int node = 0; node < static_cast<int>(world.nodes.size()); ++node) {
    any = Exchange(node) || any;
  }
  flow.OnLockEvents(world.now);
  Act();
  return any;
}

void FlowBench::Settle() {
  int looked_up = 0;
  while (settles && (Round() || (answers_lookups && AnswerLookup()))) {
    if (lookups.empty() || ++looked_up < 10'000) continue;
    ADD_FAILURE() << "the same is looked up again and again";
    return;
  }
}

void FlowBench::Take() {
  Act();
  Settle();
}

bool FlowBench::Write() {
  if (writes.empty()) return false;
  writes.front()->began = world.now.boot;
  std::vector<simulator::LedgerItem> items;
  for (const WriteItem& item : writes.front()->request.items) {
    const bool none =
        item.dead_letter != nullptr || (item.values != nullptr && item.values->empty());
    items.push_back({.id = std::string(item.record_id),
                     .source = SourceText(*item.where, item.record->offset),
                     .token = item.token,
                     .crc = item.crc,
                     .makes_rows = !none,
                     .letter = item.dead_letter != nullptr,
                     .chain = item.chain});
  }
  if (finality_ == Finality::kLedger) {
    world.ledger.Send(items);
    Answer(world.ledger.Write(items, simulator::Mood::kUsual, {}).value());
  } else {
    Answer(std::vector<WriteOutcome>(OutcomesOf(writes.front()->request)));
  }
  return true;
}

void FlowBench::Answer(const std::vector<WriteOutcome>& outcomes) {
  auto batch = std::move(writes.front());
  writes.pop_front();
  flow.OnWritten(std::move(batch), outcomes, world.now);
  Take();
}

void FlowBench::Abort() {
  const std::size_t count = OutcomesOf(writes.front()->request);
  Answer(std::vector<WriteOutcome>(count, {.result = WriteResult::kNotWritten, .detail = {}}));
}

void FlowBench::WriteAll() {
  Settle();
  while (Write()) {
  }
}

// --- lookups, calls, dead letters ----------------------------------------------------------------

bool FlowBench::AnswerLookup() {
  if (lookups.empty()) return false;
  const auto batch = std::move(lookups.front());
  lookups.pop_front();
  for (std::size_t i = 0; i < batch->ids.size(); ++i) {
    if (unread.contains(batch->ids[i])) batch->unread.push_back(i);
  }
  flow.OnLookedUp(*batch, world.ledger.Lookup(batch->ids), world.now);
  Act();
  return true;
}

void FlowBench::LookUp() {
  AnswerLookup();
  Settle();
}

void FlowBench::LookUpAll() {
  const bool before = std::exchange(answers_lookups, true);
  Settle();
  answers_lookups = before;
}

HandlerCall FlowBench::TakeCall(const std::string& id) {
  const auto found = std::find_if(calls.begin(), calls.end(),
                                  [&](const HandlerCall& call) { return call.record_id == id; });
  FENCEPOST_CHECK(found != calls.end(), "no call is out for " + id);
  HandlerCall call = std::move(*found);
  calls.erase(found);
  return call;
}

void FlowBench::Handle(const std::string& id, HandlerValues values) {
  flow.OnHandled({.id = TakeCall(id).id, .result = std::move(values)}, world.now);
  Take();
}

void FlowBench::Fail(const std::string& id, HandlerFailure failure) {
  flow.OnHandled({.id = TakeCall(id).id, .result = tl::unexpected(std::move(failure))}, world.now);
  Take();
}

void FlowBench::HandleAll() {
  LookUpAll();
  while (!calls.empty()) {
    Handle(calls.front().record_id);
    LookUpAll();
  }
}

bool FlowBench::Acknowledge() {
  if (letters.empty()) return false;
  const std::uint64_t id = letters.front().id;
  letters.pop_front();
  flow.OnDeadLettered({id}, world.now);
  Take();
  return true;
}

void FlowBench::RefuseLetters() {
  std::vector<std::uint64_t> ids;
  for (const DeadLetter& letter : letters) ids.push_back(letter.id);
  flow.OnDeadLettersRefused(ids, world.now);
  flow.OnDeadLettered({}, world.now);
  Take();
}

void FlowBench::Tune(const Tuning& tuning) {
  flow.Tune(tuning, world.now);
  Take();
}

void FlowBench::SetPaused(bool pause) {
  flow.SetPaused(pause, world.now);
  Take();
}

void FlowBench::CanPublish(bool up) {
  flow.OnDeadLetterState(up, world.now);
  Take();
}

// --- time ----------------------------------------------------------------------------------------

void FlowBench::Pass(Millis time) {
  world.now.boot += time;
  world.now.wall += time;
}

void FlowBench::Wait(Millis time) {
  for (Millis step{0}; step < time; step += Millis(10)) {
    Pass(Millis(10));
    core.OnTime(world.now);
    if (flow.NextTime() <= world.now.boot) flow.OnTime(world.now);
    Act();
    Settle();
  }
}

// --- looking -------------------------------------------------------------------------------------

std::string FlowBench::Leased() const {
  std::map<std::pair<PartitionIndex, Offset>, std::string> leased;
  flow.ForEachRecord([&](const InFlight& in) {
    if (!consumer::Leased(in) || !core.Valid(in.unit->lock(), world.now)) return;
    leased[{in.record.partition, in.record.offset}] = in.identity.id;
  });
  std::string text;
  for (const auto& [where, id] : leased) text += (text.empty() ? "" : " ") + id;
  return text;
}

std::string FlowBench::Writes() const {
  std::string text;
  for (const auto& batch : writes) {
    if (!text.empty()) text += " |";
    for (const WriteItem& item : batch->request.items) {
      text += (text.empty() ? "" : " ") + std::string(item.record_id);
    }
  }
  return text;
}

std::string FlowBench::Offsets() const {
  std::string text;
  if (writes.empty()) return text;
  for (const PartitionOffset& move : writes.front()->moves) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", move.partition, move.next);
  }
  return text;
}

std::string FlowBench::Calls() const {
  std::string text;
  for (const HandlerCall& call : calls) {
    const bool cancelled = std::find(cancels.begin(), cancels.end(), call.id) != cancels.end();
    text += (text.empty() ? "" : " ") + call.record_id + (cancelled ? "!" : "");
  }
  return text;
}

std::string FlowBench::Lookups() const {
  std::string text;
  for (const auto& batch : lookups) {
    for (const std::string& id : batch->ids) text += (text.empty() ? "" : " ") + id;
  }
  return text;
}

std::string FlowBench::Operations() const {
  static constexpr std::array kNames = {"extend",  "acquire", "fill",   "abort",
                                        "release", "done",    "forget", "inspect"};
  std::string text;
  for (const auto& [kind, count] : operations_) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ",
                        kNames.at(static_cast<std::size_t>(kind)), count);
  }
  return text;
}

std::string FlowBench::Letters() const {
  std::string text;
  for (const DeadLetter& letter : letters) {
    text += (text.empty() ? "" : " ") + letter.record_id + ":" + letter.error_class;
  }
  return text;
}

locking::NodeModel::State FlowBench::StateOf(const std::string& id, int node) const {
  return world.nodes[static_cast<std::size_t>(node)].Look(LockName("p", id), world.now.wall).state;
}

std::string FlowBench::StageOf(const std::string& id) const {
  static constexpr std::array kNames = {"unused",  "queued",  "withheld", "twin",     "locking",
                                        "granted", "lookup",  "waiting",  "handling", "retrying",
                                        "doubted", "handled", "ready",    "writing",  "dying",
                                        "blocked", "finished"};
  std::string text;
  flow.ForEachRecord([&](const InFlight& in) {
    if (in.identity.id != id) return;
    text += (text.empty() ? "" : " ");
    text += kNames.at(static_cast<std::size_t>(in.stage()));
  });
  return text;
}

Offset FlowBench::Watermark(PartitionIndex partition) const {
  WorkerStatus status;
  flow.FillStatus(status, world.now);
  for (const PartitionStatus& row : status.partitions) {
    if (row.partition == static_cast<std::int32_t>(partition)) return row.watermark;
  }
  return -1;
}

std::vector<PartitionOffset> FlowBench::Commits() {
  Pass(Millis(1000));
  flow.OnTime(world.now);
  Act();
  return TakeCommits();
}

void FlowBench::Tick() {
  core.OnTime(world.now);
  flow.OnTime(world.now);
  flow.OnLockEvents(world.now);
  Act();
}

}  // namespace fencepost::consumer
