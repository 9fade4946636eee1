#include "tests/model/simulator/sim_consumer.h"

#include <algorithm>
#include <utility>

#include "consumer/kafka/log_identity/log_samples.h"
#include "consumer/kafka/source/offset_errors.h"
#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::AssignedPartition;
using consumer::Offset;
using consumer::PartitionEnd;
using consumer::PartitionIndex;
using consumer::PartitionOffset;
using consumer::Record;
using consumer::TopicPartition;

namespace {

constexpr Millis kCommitTimeout{400};
constexpr Millis kIdle{25};
constexpr int kMostInOneGo = 40;

}  // namespace

void SimConsumer::Post(std::function<void()> step) {
  posted_at_ = std::max(posted_at_ + Nanos(1), world_.time.now() + world_.HostDelay());
  worker_.process().Later(Process::kKafka, posted_at_ - world_.time.now(), std::move(step));
}

void SimConsumer::ToBroker(std::function<void()> message) {
  const Nanos at = std::max(world_.time.now(), worker_.process().kafka_cut_until);
  told_at_ = std::max(told_at_ + Nanos(1), at + world_.NetDelay());
  world_.time.At(told_at_, std::move(message));
}

SimConsumer::SimConsumer(World& world, SimWorker& worker) : world_(world), worker_(worker) {
  if (world.plan.Replaces()) samples_.emplace(world, worker, *this);
}

void SimConsumer::Start() { Join(); }

void SimConsumer::Join() {
  state_ = State::kOut;
  ToBroker([&world = world_, index = worker_.process().index,
            life = worker_.process().incarnation(), join = ++joins_] {
    if (world.Lives(index, life)) world.broker.Join(index, life, join);
  });
}

void SimConsumer::Leave(std::function<void()> left) {
  leaving_ = std::move(left);
  if (state_ == State::kMember) Drain(false);
  if (state_ == State::kOut) OnDrained({});
}

// --- assigned and revoked ----------------------------------------------------------------------

void SimConsumer::OnAssigned(int join, int generation, const std::vector<StartAt>& starts) {
  if (state_ != State::kOut || join != joins_) return;
  state_ = State::kMember;
  generation_ = generation;
  read_to_.clear();
  std::vector<AssignedPartition> told;
  for (const auto& [index, start, metadata] : starts) {
    const Log& log = world_.broker.logs[index];
    assigned_[index] = {.next = log.PlaceOf(start), .position = start, .version = log.version};
    told.push_back({index, TopicPartition{kTopic, static_cast<std::int32_t>(index)},
                    static_cast<consumer::AssignmentEpoch>(generation), start,
                    consumer::ParseMetadata(metadata, start).failed});
    world_.checks.OnTold(told.back());
  }
  if (samples_) samples_->Begin(starts);
  PollIn(world_.random.Time(Nanos(0), kIdle));
  if (told.empty()) return;
  const auto load = worker_.core().credit().SendAssignment();
  Post([this, told = std::move(told), load] {
    worker_.core().OnKafkaState({consumer::PartPhase::kUp, ""}, worker_.process().now());
    worker_.core().OnAssigned(told, 0, load, worker_.process().now());
    worker_.Act();
  });
}

// One that comes late was for a member that is out of the group by now.
void SimConsumer::OnRevoke(int join) {
  if (state_ == State::kMember && join == joins_) Drain(false);
}

// Told of the same end twice, it joins again once.
void SimConsumer::OnKicked(int join) {
  if (join != joins_) return;
  if (state_ == State::kMember) {
    Drain(true);
  } else if (state_ == State::kDraining) {
    kicked_ = true;
  } else if (state_ == State::kOut) {
    Join();
  }
}

void SimConsumer::Drain(bool lost) {
  state_ = State::kDraining;
  lost_ = lost;
  kicked_ = false;
  to_commit_.clear();
  std::vector<PartitionIndex> partitions;
  for (const auto& [index, assigned] : assigned_) partitions.push_back(index);
  assigned_.clear();
  if (partitions.empty()) return OnDrained({});
  Post([this, partitions = std::move(partitions), lost] {
    worker_.core().OnKafkaState({consumer::PartPhase::kRebalancing, ""}, worker_.process().now());
    worker_.core().OnRevoked(partitions, lost, worker_.process().now());
    worker_.Act();
  });
}

void SimConsumer::OnDrained(std::vector<PartitionOffset> offsets) {
  const int index = worker_.process().index;
  const int life = worker_.process().incarnation();
  if (lost_) offsets.clear();
  const ToCommit last = WithMetadata(std::move(offsets));
  if (samples_) samples_->End();
  const bool out = std::exchange(lost_, false) || std::exchange(kicked_, false);
  if (leaving_) {
    state_ = State::kLeft;
    ToBroker([&broker = world_.broker, index, life, generation = generation_, last] {
      broker.Leave(index, life, generation, last);
    });
    std::exchange(leaving_, nullptr)();
  } else if (out) {
    Join();
  } else {
    state_ = State::kOut;
    ToBroker([&world = world_, index, life, join = joins_, generation = generation_, last] {
      if (world.Lives(index, life)) world.broker.Rejoin(index, life, join, generation, last);
    });
  }
}

// --- records -----------------------------------------------------------------------------------

void SimConsumer::Pause(const std::vector<PartitionIndex>& partitions) {
  for (const PartitionIndex index : partitions) {
    const auto found = assigned_.find(index);
    if (found != assigned_.end()) found->second.paused = true;
  }
}

void SimConsumer::Resume(const std::vector<PartitionIndex>& partitions) {
  for (const PartitionIndex index : partitions) {
    const auto found = assigned_.find(index);
    if (found != assigned_.end()) found->second.paused = false;
  }
  PollIn(world_.random.Time(Nanos(0), kIdle));
}

// What a fetch is answered: as the shipped source hears it (consumer/kafka/source/errors.cc).
bool SimConsumer::CheckPosition(PartitionIndex index, Assigned& assigned) {
  const Log& log = world_.broker.logs[index];
  if (assigned.version != log.version) {
    assigned.version = log.version;
    assigned.next = log.PlaceOf(assigned.position);
    assigned.told_end = -1;
  }
  const Offset end = log.End(world_.time.now());
  if (assigned.position < log.first || assigned.position > end) {
    const consumer::TopicPartition where{kTopic, static_cast<std::int32_t>(index)};
    const bool gone_on = log.any_committed && log.committed > assigned.position;
    Fail(gone_on ? consumer::PartitionTakenOver(kGroup, where, assigned.position, log.committed)
                 : consumer::OffsetOutOfRange(kGroup, where, assigned.position,
                                              consumer::LogBounds{.first = log.first, .end = end}));
    return false;
  }
  if (assigned.next > 0) {
    assigned.position = std::max(assigned.position, log.records[assigned.next - 1].next);
  }
  return true;
}

bool SimConsumer::InRange(PartitionIndex index) {
  const auto assigned = assigned_.find(index);
  return !failed_ && assigned != assigned_.end() && CheckPosition(index, assigned->second);
}

// No record comes after it; commits still go out.
void SimConsumer::Fail(fencepost::Error error) {
  if (std::exchange(failed_, true)) return;
  Post([this, error = std::move(error)] {
    worker_.core().OnSourceFailed(error);
    worker_.Act();
  });
}

void SimConsumer::OnLogChanged(bool others) {
  if (assigned_.empty()) return;
  if (others && world_.random.Chance(500)) samples_->Hurry();
  PollIn(world_.random.Time(Nanos(0), kIdle));
}

bool SimConsumer::Reads(PartitionIndex partition) const {
  const auto found = assigned_.find(partition);
  return found != assigned_.end() &&
         found->second.version == world_.broker.logs[partition].version &&
         !(samples_ && samples_->Waits(partition));
}

void SimConsumer::OnCompared() { PollIn(world_.HostDelay()); }

void SimConsumer::Poll() {
  if (failed_) return;
  std::size_t room = worker_.core().credit().Records();
  std::size_t read = 0;
  for (auto& [index, assigned] : assigned_) {
    if (assigned.paused) continue;
    if (!CheckPosition(index, assigned)) return;
    if (samples_ && samples_->Waits(index)) continue;
    std::vector<Record> records;
    const auto most = static_cast<std::size_t>(world_.random.Between(1, kMostInOneGo));
    const std::size_t count = Read(index, assigned, std::min(room, most), records);
    room -= count;
    read += count;
    if (count > 0) {
      const auto load = worker_.core().credit().Send(records);
      auto shared = std::make_shared<std::vector<Record>>(std::move(records));
      Post([this, shared, load] {
        for (const Record& record : *shared) {
          worker_.Delivered(consumer::SourceText(
              {kTopic, static_cast<std::int32_t>(record.partition)}, record.offset));
        }
        worker_.core().OnRecords(std::move(*shared), load, worker_.process().now());
        worker_.Act();
      });
    }
    TellEnd(index, assigned);
  }
  if (read > 0) return PollIn(world_.random.Time(Millis(1), Millis(4)));
  // Idle: until the next record can be read, or something else changes.
  const Nanos now = world_.time.now();
  for (const auto& [index, assigned] : assigned_) {
    const auto& records = world_.broker.logs[index].records;
    if (assigned.paused || assigned.next == records.size()) continue;
    if (samples_ && samples_->Waits(index)) continue;
    const Nanos at = records[assigned.next].at;
    if (at > now) PollIn(at - now);
  }
}

void SimConsumer::PollIn(Nanos wait) {
  const Nanos at = world_.time.now() + wait;
  if (poll_at_ <= at) return;
  poll_at_ = at;
  worker_.process().Later(Process::kKafka, wait, [this, at] {
    if (poll_at_ != at) return;
    poll_at_ = Nanos::max();
    Poll();
  });
}

void SimConsumer::Nudge() {
  const Nanos now = world_.time.now();
  if (poll_at_ < now + kIdle || worker_.core().credit().Records() == 0) return;
  for (const auto& [index, assigned] : assigned_) {
    const Log& log = world_.broker.logs[index];
    if (assigned.paused || assigned.next >= log.Visible(now)) continue;
    return PollIn(world_.random.Time(Nanos(0), kIdle));
  }
}

std::optional<Phase> SimConsumer::PhaseNow() const {
  if (state_ == State::kDraining) return Phase::kDraining;
  if (state_ != State::kOut) return std::nullopt;
  return generation_ == 0 ? Phase::kStarting : Phase::kRebalancing;
}

std::size_t SimConsumer::Read(PartitionIndex index, Assigned& assigned, std::size_t most,
                              std::vector<Record>& out) {
  const Log& log = world_.broker.logs[index];
  const std::size_t end = std::min(log.Visible(world_.time.now()), assigned.next + most);
  for (; assigned.next < end; ++assigned.next) {
    out.push_back(Broker::Read(log.records[assigned.next], index));
    out.back().epoch = static_cast<consumer::AssignmentEpoch>(generation_);
    if (samples_) samples_->OnRead(out.back());
    assigned.position = log.records[assigned.next].next;
    read_to_[index] = assigned.position;
  }
  return out.size();
}

void SimConsumer::TellEnd(PartitionIndex index, Assigned& assigned) {
  const Log& log = world_.broker.logs[index];
  const Nanos now = world_.time.now();
  const Offset end = log.End(now);
  if (assigned.next < log.Visible(now) || assigned.told_end == end) return;
  assigned.told_end = end;
  const PartitionEnd told{index, static_cast<consumer::AssignmentEpoch>(generation_), end};
  Post([this, told] {
    worker_.core().OnPartitionEnd({told}, worker_.process().now());
    worker_.Act();
  });
}

// --- offsets -----------------------------------------------------------------------------------

void SimConsumer::Commit(std::vector<PartitionOffset> offsets) {
  for (const PartitionOffset& offset : offsets) {
    const bool ours = state_ == State::kMember && assigned_.contains(offset.partition) &&
                      offset.epoch == static_cast<consumer::AssignmentEpoch>(generation_);
    if (ours) to_commit_[offset.partition] = offset;
  }
  SendCommit();
}

ToCommit SimConsumer::WithMetadata(std::vector<PartitionOffset> offsets) {
  std::vector<std::string> metadata;
  if (samples_) metadata = samples_->MetadataFor(offsets);
  for (std::size_t i = metadata.size(); i < offsets.size(); ++i) {
    metadata.push_back(consumer::MetadataText({{}, offsets[i].failed}, offsets[i].next));
  }
  return {std::move(offsets), std::move(metadata)};
}

void SimConsumer::SendCommit() {
  if (commit_out_ != 0 || to_commit_.empty()) return;
  std::vector<PartitionOffset> offsets;
  for (const auto& [index, offset] : to_commit_) offsets.push_back(offset);
  to_commit_.clear();
  const int commit = commit_out_ = ++commits_;
  const locking::Instant sent = worker_.process().now().boot;
  const bool trouble = world_.Strikes(Fault::kCommits, world_.plan.commit_faults);
  const bool vanishes = trouble && world_.random.Chance(700);
  const bool refused = trouble && !vanishes;
  Process& process = worker_.process();
  ToBroker([this, &process, &world = world_, life = process.incarnation(), generation = generation_,
            commit, offsets, asked = WithMetadata(offsets), vanishes, refused, sent] {
    if (vanishes && world.random.Chance(500)) return;
    const bool ok = !refused && world.broker.Commit(process.index, life, generation, asked);
    if (vanishes || process.incarnation() != life) return;
    process.Later(Process::kKafka, world.NetDelay(),
                  [this, commit, offsets, taken = ok ? std::optional(sent) : std::nullopt] {
                    OnCommitAnswer(commit, offsets, taken);
                  });
  });
  process.Later(Process::kTimer, kCommitTimeout,
                [this, commit, offsets] { OnCommitAnswer(commit, offsets, std::nullopt); });
}

void SimConsumer::OnCommitAnswer(int commit, std::vector<PartitionOffset> offsets,
                                 std::optional<locking::Instant> sent) {
  if (commit != commit_out_) return;
  commit_out_ = 0;
  Post([this, offsets = std::move(offsets), sent] {
    worker_.core().OnCommitted(offsets, sent, worker_.process().now());
    worker_.Act();
  });
  SendCommit();
}

}  // namespace fencepost::simulator
