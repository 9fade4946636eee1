#include "tests/model/simulator/broker.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/log_identity/log_samples.h"
#include "consumer/kafka/source/initial_offsets.h"
#include "consumer/record/content.h"
#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using consumer::Offset;
using consumer::PartitionIndex;
using consumer::PartitionOffset;

constexpr Millis kBeforeRebalance{30};
constexpr Millis kRebalanceGrace{300};
constexpr std::size_t kMostReplays = 20;  // in a partition
constexpr char kLaterMark = '\'';

// By their timestamps, which are whole milliseconds, its records are newer than all of the first.
Nanos FirstOfLater(const Plan& plan) { return plan.replaced_at + Millis(2); }

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
  return visible == 0 ? first : records[visible - 1].next;
}

// --- the work ----------------------------------------------------------------------------------

void Broker::Fill() {
  const Plan& plan = world_.plan;
  Random& random = world_.random;
  logs.resize(static_cast<std::size_t>(plan.AllPartitions()));
  shared_out_ = static_cast<std::size_t>(plan.partitions);
  bool cut = false;
  for (int i = 0; i < plan.records; ++i) {
    const Nanos at = plan.produce_for * i / plan.records;
    const bool added = plan.added > 0 && at >= plan.added_at;
    const int partition = random.Below(added ? plan.AllPartitions() : plan.partitions);
    Log& log = logs[static_cast<std::size_t>(partition)];
    // A later log has no holes, and the first one none at its beginning: a record that is not there
    // tells nothing of its log.
    const bool later = plan.Replaces() && at >= plan.replaced_at;
    if (later && !std::exchange(cut, true)) KeepBeginnings();
    auto& records = later ? log.later : log.records;
    LogRecord& record = records.emplace_back();
    const std::size_t count = records.size();
    const bool hole = count < 2 && !plan.Replaces();
    record.offset = hole ? random.Below(3) : count < 2 ? 0 : records[count - 2].next;
    record.next =
        record.offset + 1 + (!later && random.Chance(plan.holes) ? random.Between(1, 3) : 0);
    record.at = at;
    if (later)
      record.at = FirstOfLater(plan) + (plan.refilled_at_once ? Nanos(0) : at - plan.replaced_at);
    record.made = std::chrono::floor<Millis>(record.at);
    const int id = i < plan.ids ? i : random.Below(plan.ids);
    record.source = consumer::SourceText({kTopic, partition}, record.offset);
    if (later) record.source += kLaterMark;
    const bool without_id = !plan.by_position && random.Chance(plan.without_id);
    if (!without_id) record.header_id = fmt::format("id-{}", id);
    record.doubtful = plan.conflicts > 0;
    record.key = fmt::format("k{}", id % 5);
    record.keyless = id % 5 == 4;
    record.filtered = plan.filters && id % 13 == 12;
    const bool other = i >= plan.ids && random.Chance(plan.conflicts);
    record.value = fmt::format("v{}{}", id, other ? "-other" : "");
    record.record_id = plan.by_position
                           ? fmt::format("{}/{}/{}/{}", kCluster, kTopic, partition, record.offset)
                           : record.header_id;  // empty where there is none
    if (record.filtered) continue;              // nobody may ever see it
    std::string chain = ChainOf(static_cast<PartitionIndex>(partition), record);
    if (later && !chain.empty()) chain += kLaterMark;
    world_.checks.OnSentRecord(record, chain, partition, later ? 1 : 0);
  }
  if (plan.Replaces() && !cut) KeepBeginnings();
  // What was read of a record goes on pointing to it.
  for (Log& log : logs) log.records.reserve(log.records.size() + kMostReplays);
}

std::string Broker::ChainOf(PartitionIndex partition, const LogRecord& record) const {
  const consumer::Order order = world_.plan.flow.order;
  const bool by_key = order == consumer::Order::kKey;
  if (order == consumer::Order::kNone || (by_key && record.keyless)) return "";
  return fmt::format("p{}{}", partition, by_key ? record.key : "");
}

// What of the logs stays when their ends are lost.
void Broker::KeepBeginnings() {
  if (!world_.plan.Has(Fault::kTailLost)) return;
  for (Log& log : logs) {
    const auto lost = static_cast<std::size_t>(world_.random.Below(5));
    log.kept = log.records.size() - std::min(lost, log.records.size());
    log.later.assign(log.records.begin(),
                     log.records.begin() + static_cast<std::ptrdiff_t>(log.kept));
  }
}

std::string Broker::SourceOf(const consumer::TopicPartition& where,
                             const consumer::Record& record) const {
  std::string source = consumer::SourceText(where, record.offset);
  const Plan& plan = world_.plan;
  const bool later =
      plan.Replaces() && record.timestamp >= std::chrono::floor<Millis>(FirstOfLater(plan));
  if (later) source += kLaterMark;
  return source;
}

consumer::Record Broker::Read(const LogRecord& from, PartitionIndex partition) {
  consumer::Record record;
  record.partition = partition;
  record.offset = from.offset;
  record.timestamp = std::chrono::floor<Millis>(from.at);
  if (!from.keyless) record.key = from.key;
  record.filtered = from.filtered;
  record.value = from.value;
  if (!from.header_id.empty()) record.headers.push_back({"id", from.header_id});
  record.headers.push_back({"row", from.key});
  for (const auto& [name, value] : from.headers) record.headers.push_back({name, value});
  return record;
}

consumer::LogState Broker::Look(const consumer::TopicPartition& where,
                                const std::vector<Offset>& offsets) const {
  const Log& log = logs[static_cast<std::size_t>(where.partition)];
  const Nanos now = world_.time.now();
  const std::size_t visible = log.Visible(now);
  consumer::LogState state{.end = log.End(now), .records = {}};
  for (const Offset offset : offsets) {
    const std::size_t place = log.PlaceOf(offset);
    if (place >= visible || offset < log.first || log.records[place].offset != offset) continue;
    state.records.push_back(consumer::SampleOf(Read(log.records[place], 0)));
  }
  return state;
}

bool Broker::Finished() const {
  const Nanos now = world_.time.now();
  return std::all_of(logs.begin(), logs.end(), [now](const Log& log) {
    // Of what was deleted before anything was committed there is nothing to commit.
    const Offset done = log.any_committed ? log.committed : std::max(log.committed, log.first);
    return log.later.empty() && log.Visible(now) == log.records.size() && done == log.End(now);
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
  const bool stable =
      !rebalancing_ && generation_ > 0 && before->second.generation == generation_ && open_.empty();
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
    world_.checks.OnGone(static_cast<int>(partition), log.records[i].source);
  }
  TellOfLogs(false);
}

void Broker::TellOfLogs(bool others) {
  for (int i = 0; i < world_.plan.workers; ++i) {
    SimWorker* const worker = world_.worker(i);
    if (worker != nullptr) worker->consumer().OnLogChanged(others);
  }
}

// The topic was deleted, and made again under its name. Brokers of some versions delete the group's
// offsets with it. Some members hear that it was gone, and the group may. Or a replica without the
// last records has become the leader.
void Broker::Replace() {
  const bool remade = world_.plan.Has(Fault::kTopicRemade);
  world_.Note("{}", remade ? "the topic is made again" : "the logs lose their ends");
  world_.Strike(remade ? Fault::kTopicRemade : Fault::kTailLost);
  for (std::size_t p = 0; p < logs.size(); ++p) {
    Log& log = logs[p];
    for (std::size_t i = log.kept; i < log.records.size(); ++i) {
      world_.checks.OnReplaced(log.records[i].source);
    }
    world_.checks.OnAnotherLog(static_cast<int>(p), PassedUnseen(static_cast<PartitionIndex>(p)));
    log.former = std::exchange(log.records, std::exchange(log.later, {}));
    ++log.version;
  }
  if (world_.plan.offsets_go && remade) LoseOffsets();
  TellOfLogs(true);
  if (world_.random.Chance(500)) Rebalance();
}

// Up to where nobody may notice what is written in the place of a lost end (deploy/operations/
// faults.md): where the record by which the group knows its log has stayed, to where it has come.
Offset Broker::PassedUnseen(PartitionIndex partition) const {
  const Log& log = logs[partition];
  const Offset kept = log.kept == 0 ? 0 : log.records[log.kept - 1].next;
  const auto known = consumer::ParseMetadata(log.metadata, log.committed).sample;
  if (log.kept == 0 || (known && known->offset >= kept)) return 0;
  Offset passed = log.committed;
  for (int i = 0; i < world_.plan.workers; ++i) {
    const SimWorker* const worker = world_.worker(i);
    if (worker != nullptr) passed = std::max(passed, worker->consumer().PositionOf(partition));
  }
  return passed;
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
      Send(name, member, [join = member.join](SimConsumer& consumer) { consumer.OnRevoke(join); });
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
    logs[p].metadata.clear();
    world_.checks.OnOffsetLost(static_cast<int>(p));
  }
}

void Broker::SetOffset(PartitionIndex partition, Offset next) {
  world_.Note("the offset of partition {} is set to {}", partition, next);
  logs[partition].committed = next;
  logs[partition].any_committed = true;
  logs[partition].metadata.clear();
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
        if (!logs[p].any_committed && (all || mine)) Begin(static_cast<PartitionIndex>(p));
      }
    }
  }
}

void Broker::Begin(PartitionIndex partition) {
  Log& log = logs[partition];
  log.committed = log.first;
  log.any_committed = true;
  if (log.first > 0) world_.checks.OnBegins(static_cast<int>(partition), log.first);
}

void Broker::BeginTheRest() {
  for (std::size_t p = 0; p < logs.size(); ++p) {
    if (!logs[p].any_committed) Begin(static_cast<PartitionIndex>(p));
  }
}

void Broker::Assign(const Name& name, Member& member) {
  std::vector<StartAt> starts;
  for (const PartitionIndex p : member.partitions) {
    starts.push_back({p, logs[p].committed, logs[p].metadata});
  }
  world_.Note("w{} gets {} partitions, generation {}", name.first, starts.size(), generation_);
  Send(name, member, [starts, join = member.join, generation = generation_](SimConsumer& consumer) {
    consumer.OnAssigned(join, generation, starts);
  });
}

void Broker::Rejoin(int worker, int life, int join, int generation, const ToCommit& last) {
  const auto found = members_.find({worker, life});
  if (found == members_.end()) return SendKicked({worker, life}, join);
  Commit(worker, life, generation, last);
  found->second.answered = true;
  TryComplete();
}

void Broker::Leave(int worker, int life, int generation, const ToCommit& last) {
  Commit(worker, life, generation, last);
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

bool Broker::Commit(int worker, int life, int generation, const ToCommit& asked) {
  if (!Current(worker, life, generation)) return false;
  for (std::size_t i = 0; i < asked.offsets.size(); ++i) {
    const PartitionOffset& offset = asked.offsets[i];
    Log& log = logs[offset.partition];
    world_.Note("w{} commits {} of partition {}", worker, offset.next, offset.partition);
    world_.checks.OnCommit(static_cast<int>(offset.partition), offset.next);
    log.committed = offset.next;
    log.any_committed = true;
    if (!asked.metadata.empty()) log.metadata = asked.metadata[i];
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
