#include "tests/model/flow/flow_bench.h"

#include <algorithm>
#include <array>

#include "locking/core/sentinel.h"

namespace fencepost::consumer {

using locking::Op;
using locking::Reply;

SharedWorld::SharedWorld(int count) {
  for (int i = 0; i < count; ++i) {
    nodes.emplace_back(std::string(locking::kRunIdSize, static_cast<char>('a' + i)));
    locking::Sentinel sentinel;
    sentinel.complete = true;
    sentinel.store_id = std::string(locking::kStoreIdSize, '1');
    sentinel.index = i;
    sentinel.nodes = count;
    sentinel.run_id = nodes.back().run_id();
    sentinel.max_ttl = lock.max_ttl;
    nodes.back().ApplySentinelWrite({std::nullopt, sentinel.Encode(), std::nullopt}, now.wall);
  }
}

void SharedWorld::Steal(const std::string& name) {
  for (testing::NodeModel& node : nodes) {
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

FlowOptions FlowBench::Options(Order order) {
  FlowOptions options;
  options.pipeline = "p";
  options.record_id = {Selector::Kind::kHeader, "id", false};
  options.order = order;
  options.lock_wait = Millis(2000);
  return options;
}

FlowBench::FlowBench(SharedWorld& shared, FlowOptions options, std::uint64_t seed)
    : world(shared),
      random(seed << 32),
      core(
          static_cast<int>(shared.nodes.size()), shared.lock, locking::StoreCreation::kQuarantined,
          [this] { return random += 0x9e3779b97f4a7c15ULL; }, nullptr),
      flow(std::move(options), &core, &told) {
  for (int node = 0; node < static_cast<int>(world.nodes.size()); ++node) Connect(node);
  flow.OnClusterId("cluster");
}

void FlowBench::Connect(int node) {
  const testing::NodeModel& model = world.nodes[static_cast<std::size_t>(node)];
  locking::NodeInfo info;
  info.run_id = model.run_id();
  info.maxmemory_policy = "noeviction";
  info.role = "master";
  info.sentinel = model.sentinel();
  info.call = {world.now.boot, world.now.boot, world.now.wall};
  core.store().OnConnected(node, info, world.now);
  core.OnTime(world.now);
}

void FlowBench::Assign(PartitionIndex partition, Offset start, AssignmentEpoch epoch) {
  sources_[partition] = {epoch, start};
  flow.OnAssigned({{partition, {"t", static_cast<std::int32_t>(partition)}, epoch, start}},
                  world.now);
  Act();
}

void FlowBench::Deliver(PartitionIndex partition, const std::vector<std::string>& records) {
  Source& source = sources_[partition];
  std::vector<Record> delivered;
  for (const std::string& text : records) {
    const std::size_t mark = text.find_first_of("@=");
    const std::string& id = texts_.emplace_back(text.substr(0, mark));
    Record& record = delivered.emplace_back();
    record.partition = partition;
    record.epoch = source.epoch;
    record.offset = source.next++;
    if (!id.empty()) record.headers.push_back({"id", id});
    if (mark == std::string::npos) continue;
    const std::string& rest = texts_.emplace_back(text.substr(mark + 1));
    (text[mark] == '@' ? record.key : record.value) = rest;
  }
  flow.OnRecords(std::move(delivered), world.now);
  Act();
}

void FlowBench::End(PartitionIndex partition, Offset end) {
  flow.OnPartitionEnd({{partition, sources_[partition].epoch, end}}, world.now);
  Act();
}

void FlowBench::Revoke(PartitionIndex partition, bool lost) {
  drained.reset();
  flow.OnRevoked({partition}, lost, world.now.boot + Millis(1000), world.now);
  Act();
}

void FlowBench::Act() {
  FlowActions actions = std::exchange(flow.actions(), FlowActions());
  paused.insert(paused.end(), actions.pause.begin(), actions.pause.end());
  resumed.insert(resumed.end(), actions.resume.begin(), actions.resume.end());
  commits_.insert(commits_.end(), actions.commit.begin(), actions.commit.end());
  for (auto& batch : actions.writes) writes.push_back(std::move(batch));
  if (actions.drained) drained = std::move(actions.drained);
  if (actions.stop) stop = std::move(actions.stop);
}

bool FlowBench::Exchange(int node) {
  std::vector<Op> ops;
  if (core.TakeBatch(node, ops) == 0) return false;
  std::vector<Reply> replies;
  for (const Op& op : ops) {
    world.nodes[static_cast<std::size_t>(node)].Apply(
        op.kind, std::span(&op, 1), world.lock, world.now.wall, world.now.wall, nullptr, replies);
  }
  core.OnReplies(node, replies, world.now);
  return true;
}

void FlowBench::Settle() {
  for (bool more = true; more;) {
    more = false;
    for (int node = 0; node < static_cast<int>(world.nodes.size()); ++node) {
      more = Exchange(node) || more;
    }
    flow.OnLockEvents(world.now);
    Act();
  }
}

bool FlowBench::Write() {
  if (writes.empty()) return false;
  auto batch = std::move(writes.front());
  writes.pop_front();
  std::vector<simulator::LedgerItem> items;
  for (const WriteItem& item : batch->request.items) {
    items.push_back({std::string(item.record_id), SourceText(*item.where, item.record->offset),
                     item.token, item.crc});
  }
  flow.OnWritten(std::move(batch), world.ledger.Write(items), world.now);
  Act();
  Settle();
  return true;
}

void FlowBench::WriteAll() {
  Settle();
  while (Write()) {
  }
}

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

std::string FlowBench::Leased() const {
  std::map<std::pair<PartitionIndex, Offset>, std::string> leased;
  flow.ForEachRecord([&](const InFlight& in) {
    if (!in.leased || !core.Valid(in.lock, world.now)) return;
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

std::string FlowBench::StageOf(const std::string& id) const {
  static constexpr std::array kStages = {"unused", "queued",  "twin",    "locking", "granted",
                                         "ready",  "writing", "blocked", "finished"};
  std::string text;
  flow.ForEachRecord([&](const InFlight& in) {
    if (in.identity.id != id) return;
    text += (text.empty() ? "" : " ");
    text += kStages.at(static_cast<std::size_t>(in.stage));
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
  return std::exchange(commits_, {});
}

}  // namespace fencepost::consumer
