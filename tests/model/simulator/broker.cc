#include "tests/model/simulator/broker.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/source/initial_offsets.h"
#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using consumer::Offset;
using consumer::PartitionIndex;
using consumer::PartitionOffset;

constexpr Millis kBeforeRebalance{30};
constexpr Millis kRebalanceGrace{300};

}  // namespace

std::size_t Log::Visible(Nanos now) const {
  const auto end = std::partition_point(records.begin(), records.end(),
                                        [now](const LogRecord& r) { return r.at <= now; });
  return static_cast<std::size_t>(end - records.begin());
}

std::size_t Log::PlaceOf(Offset offset) const {
  const auto at = std::partition_point(records.begin(), records.end(),
                                       [offset](const LogRecord& r) { return r.offset < offset; });
  return static_cast<std::size_t>(at - records.begin());
}

Offset Log::End(Nanos now) const {
  const std::size_t visible = Visible(now);
  return visible == 0 ? 0 : records[visible - 1].next;
}

// --- the work ----------------------------------------------------------------------------------

void Broker::Fill() {
  const Plan& plan = world_.plan;
  Random& random = world_.random;
  logs.resize(static_cast<std::size_t>(plan.AllPartitions()));
  shared_out_ = static_cast<std::size_t>(plan.partitions);
  for (int i = 0; i < plan.records; ++i) {
    const Nanos at = plan.produce_for * i / plan.records;
    const bool added = plan.added > 0 && at >= plan.added_at;
    const int partition = random.Below(added ? plan.AllPartitions() : plan.partitions);
    Log& log = logs[static_cast<std::size_t>(partition)];
    LogRecord& record = log.records.emplace_back();
    const std::size_t count = log.records.size();
    record.offset = count < 2 ? random.Below(3) : log.records[count - 2].next;
    record.next = record.offset + 1 + (random.Chance(plan.holes) ? random.Between(1, 3) : 0);
    record.at = at;
    const int id = i < plan.ids ? i : random.Below(plan.ids);
    record.source = consumer::SourceText({kTopic, partition}, record.offset);
    const bool without_id = !plan.by_position && random.Chance(plan.without_id);
    if (!without_id) record.header_id = fmt::format("id-{}", id);
    record.doubtful = plan.conflicts > 0;
    record.key = fmt::format("k{}", id % 5);
    const bool other = i >= plan.ids && random.Chance(plan.conflicts);
    record.value = fmt::format("v{}{}", id, other ? "-other" : "");
    record.record_id = plan.by_position
                           ? fmt::format("{}/{}/{}/{}", kCluster, kTopic, partition, record.offset)
                           : record.header_id;  // empty where there is none
    std::string chain;
    if (plan.flow.order != consumer::Order::kNone) chain = fmt::format("p{}", partition);
    if (plan.flow.order == consumer::Order::kKey) chain += record.key;
    world_.checks.OnSentRecord(record, chain, partition);
  }
}

bool Broker::Finished() const {
  const Nanos now = world_.time.now();
  return std::all_of(logs.begin(), logs.end(), [now](const Log& log) {
    return log.Visible(now) == log.records.size() && log.committed == log.End(now);
  });
}

std::string Broker::Lag() const {
  std::string text;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    text += fmt::format("partition {}: committed {} of {}; ", i, logs[i].committed,
                        logs[i].End(world_.time.now()));
  }
  return text;
}

// --- the group ---------------------------------------------------------------------------------

// A static member that comes back within its session gets what it had; who it was before is fenced.
bool Broker::ComeBack(int worker, int life, int join) {
  if (!world_.plan.static_members) return false;
  const auto before = std::ranges::find_if(
      members_, [&](const auto& entry) { return entry.first.first == worker; });
  if (before == members_.end()) return false;
  const bool stable = !rebalancing_ && before->second.generation == generation_ && open_.empty();
  auto had = std::move(before->second.partitions);
  members_.erase(before);
  if (!stable) return false;
  world_.Note("w{} is back", worker);
  world_.Count("static members back");
  Member member = {
      .answered = true, .join = join, .generation = generation_, .partitions = std::move(had)};
  Assign({worker, life}, members_[{worker, life}] = std::move(member));
  return true;
}

void Broker::AddPartitions() {
  world_.Note("there are {} partitions now", logs.size());
  shared_out_ = logs.size();
  Rebalance();
}

// Whoever wants to read them hears of it with its next fetch.
void Broker::DeleteOldest() {
  const auto partition =
      static_cast<std::size_t>(world_.random.Below(static_cast<int>(shared_out_)));
  Log& log = logs[partition];
  const auto visible = static_cast<int>(log.Visible(world_.time.now()));
  if (visible == 0) return;
  // Mostly about where the group is.
  const int done = static_cast<int>(log.PlaceOf(log.committed));
  const int most = std::min(visible, world_.random.Chance(700) ? done + 3 : visible);
  if (most == 0) return;
  const auto count = static_cast<std::size_t>(world_.random.Between(1, most));
  if (log.records[count - 1].next <= log.first) return;
  world_.Strike(Fault::kRetention);
  log.first = log.records[count - 1].next;
  world_.Note("partition {} begins at {} now", partition, log.first);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::exchange(log.records[i].gone, true)) continue;
    world_.checks.OnGone(log.records[i].source);
  }
  for (int i = 0; i < world_.plan.workers; ++i) {
    SimWorker* const worker = world_.worker(i);
    if (worker != nullptr) worker->consumer().OnLogChanged();
  }
}

void Broker::Join(int worker, int life, int join) {
  if (ComeBack(worker, life, join)) return;
  members_[{worker, life}] = Member{.answered = true, .join = join};
  world_.Note("w{} joins", worker);
  if (rebalancing_) return TryComplete();
  Rebalance();
}

// Several who come at once are served at once.
void Broker::Rebalance() {
  if (rebalancing_ || std::exchange(planned_, true)) return;
  world_.time.In(kBeforeRebalance, [this] {
    planned_ = false;
    rebalancing_ = true;
    const int round = ++round_;
    for (auto& [name, member] : members_) {
      if (member.generation == 0) continue;
      member.answered = false;
      Send(name, member, [](SimConsumer& consumer) { consumer.OnRevoke(); });
    }
    world_.time.In(world_.plan.revoke_drain + world_.plan.session + kRebalanceGrace, [this, round] {
      if (!rebalancing_ || round != round_) return;
      std::vector<Name> late;
      for (const auto& [name, member] : members_) {
        if (!member.answered) late.push_back(name);
      }
      for (const Name& name : late) Kick(name.first, name.second);
    });
    TryComplete();
  });
}

void Broker::TryComplete() {
  const auto answered = [](const auto& entry) { return entry.second.answered; };
  if (!rebalancing_ || !std::all_of(members_.begin(), members_.end(), answered)) return;
  if (!open_.empty()) return;  // where to go on is known when they have ended
  rebalancing_ = false;
  ++generation_;
  std::size_t place = 0;
  for (auto& [name, member] : members_) {
    member.generation = generation_;
    member.partitions.clear();
    for (std::size_t p = place++; p < shared_out_; p += members_.size()) {
      member.partitions.push_back(static_cast<PartitionIndex>(p));
    }
  }
  if (world_.Strikes(Fault::kOffsetsLost, world_.plan.offsets_lost)) LoseOffsets();
  DecideStarts();
  for (auto& [name, member] : members_) Assign(name, member);
}

// They expired, or somebody deleted them.
void Broker::LoseOffsets() {
  world_.Note("the offsets of the group are lost");
  for (std::size_t p = 0; p < logs.size(); ++p) {
    logs[p].committed = 0;
    logs[p].any_committed = false;
    world_.checks.OnOffsetLost(static_cast<int>(p));
  }
}

void Broker::SetOffset(PartitionIndex partition, Offset next) {
  world_.Note("the offset of partition {} is set to {}", partition, next);
  logs[partition].committed = next;
  logs[partition].any_committed = true;
  world_.checks.OnOffsetSet(static_cast<int>(partition), next);
}

// By the shipped rule: what each member does for its partitions. `start_from: earliest`.
void Broker::DecideStarts() {
  std::size_t waiting = 1;
  while (waiting > 0) {
    waiting = 0;
    for (const auto& [name, member] : members_) {
      std::vector<consumer::KnownPartition> known(shared_out_);
      for (std::size_t p = 0; p < shared_out_; ++p) {
        known[p].owned = std::ranges::count(member.partitions, p) > 0;
        if (logs[p].any_committed) known[p].committed = logs[p].committed;
      }
      const consumer::StartStep step =
          member.partitions.empty() ? consumer::StartStep::kReady : consumer::DecideStart(known);
      if (step == consumer::StartStep::kWait) ++waiting;
      for (std::size_t p = 0; p < shared_out_; ++p) {
        const bool all = step == consumer::StartStep::kCommitAll;
        const bool mine = step == consumer::StartStep::kCommitNew && known[p].owned;
        if (!logs[p].any_committed && (all || mine)) Start(static_cast<PartitionIndex>(p));
      }
    }
  }
}

void Broker::Start(PartitionIndex partition) {
  Log& log = logs[partition];
  log.committed = log.first;
  log.any_committed = true;
  if (log.first > 0) world_.checks.OnBegins(static_cast<int>(partition), log.first);
}

void Broker::Assign(const Name& name, Member& member) {
  std::vector<std::pair<PartitionIndex, Offset>> starts;
  for (const PartitionIndex p : member.partitions) starts.emplace_back(p, logs[p].committed);
  world_.Note("w{} gets {} partitions, generation {}", name.first, starts.size(), generation_);
  Send(name, member, [starts, join = member.join, generation = generation_](SimConsumer& consumer) {
    consumer.OnAssigned(join, generation, starts);
  });
}

void Broker::Rejoin(int worker, int life, int join, int generation,
                    const std::vector<PartitionOffset>& offsets) {
  const auto found = members_.find({worker, life});
  if (found == members_.end()) return SendKicked({worker, life}, join);
  Commit(worker, life, generation, offsets);
  found->second.answered = true;
  TryComplete();
}

void Broker::Leave(int worker, int life, int generation,
                   const std::vector<PartitionOffset>& offsets) {
  Commit(worker, life, generation, offsets);
  if (world_.plan.static_members) return;  // its session ends it
  if (members_.erase({worker, life}) == 0) return;
  world_.Note("w{} leaves", worker);
  rebalancing_ ? TryComplete() : Rebalance();
}

void Broker::Kick(int worker, int life) {
  const auto found = members_.find({worker, life});
  if (found == members_.end()) return;
  const int join = found->second.join;
  members_.erase(found);
  world_.Note("w{} is out of the group", worker);
  SendKicked({worker, life}, join);
  rebalancing_ ? TryComplete() : Rebalance();
}

bool Broker::Current(int worker, int life, int generation) const {
  const auto member = members_.find({worker, life});
  return member != members_.end() && generation == generation_ &&
         member->second.generation == generation;
}

bool Broker::Commit(int worker, int life, int generation,
                    const std::vector<PartitionOffset>& offsets) {
  if (!Current(worker, life, generation)) return false;
  for (const PartitionOffset& offset : offsets) {
    Log& log = logs[offset.partition];
    world_.Note("w{} commits {} of partition {}", worker, offset.next, offset.partition);
    world_.checks.OnCommit(log, static_cast<int>(offset.partition), offset.next);
    log.committed = offset.next;
    log.any_committed = true;
  }
  return true;
}

void Broker::Send(const Name& name, Member& member, std::function<void(SimConsumer&)> message) {
  member.told_at = std::max(member.told_at + Nanos(1), world_.time.now() + world_.NetDelay());
  world_.time.At(member.told_at, [this, name, message = std::move(message)] {
    world_.ToConsumer(name.first, name.second, message);
  });
}

void Broker::SendKicked(const Name& name, int join) {
  world_.time.In(world_.NetDelay() + Millis(20), [this, name, join] {
    world_.ToConsumer(name.first, name.second, [join](SimConsumer& c) { c.OnKicked(join); });
  });
}

}  // namespace fencepost::simulator
