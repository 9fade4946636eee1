#include "consumer/handlers/batch_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kAroundARecord = 512;  // bytes: where it was read, its id and its token

std::size_t SizeOf(const HandlerCall& call) {
  std::size_t size = kAroundARecord + call.record_id.size();
  size += call.record.key.value_or("").size() + call.record.value.value_or("").size();
  for (const HeaderView& header : call.record.headers) {
    size += header.name.size() + header.value.value_or("").size();
  }
  return size;
}

}  // namespace

BatchQueue::BatchQueue(const BatchOptions& options, double requests_a_second)
    : options_(options), rate_(requests_a_second) {}

void BatchQueue::Add(HandlerCall call, Instant now) {
  most_ = MostRecords(now);
  if (call.alone) return alone_.push_back(std::move(call));
  const bool shares = shared_ && options_.max_records > 1;
  const auto [at, made] = groups_.try_emplace(shares ? shared_(call) : std::string());
  if (made) at->second.number = ++made_;
  const Nanos wait = std::min<Nanos>(options_.linger, (call.valid_until - now) / 2);
  at->second.calls.push_back({std::move(call), now, now + wait});
  Fill(at->second);
  by_due_.emplace(std::pair(at->second.due, at->second.number), at);
}

// Goes on where it had to wait for more calls. Afterwards it has no place in by_due_.
void BatchQueue::Fill(Group& group) {
  by_due_.erase({group.due, group.number});
  while (!group.full_since && group.records < group.calls.size()) {
    const Waiting& next = group.calls[group.records];
    const std::size_t size = SizeOf(next.call);
    const bool fits = group.records == 0 || group.bytes + size <= kMostBytes;
    if (fits) {
      ++group.records;
      group.bytes += size;
    }
    if (!fits || group.records >= most_) group.full_since = next.since;
  }
  const Instant until = group.calls.front().until;
  group.due = group.full_since ? std::min(*group.full_since, until) : until;
}

void BatchQueue::FillAgain(Group& group) {
  group.records = group.bytes = 0;
  group.full_since.reset();
  Fill(group);
}

void BatchQueue::Erase(Groups::iterator group) {
  by_due_.erase({group->second.due, group->second.number});
  groups_.erase(group);
}

void BatchQueue::Halve(CallBatch batch, Instant now) {
  if (now >= halved_until_) in_halves_.clear();
  const auto known = [this](const HandlerCall& call) { return in_halves_.contains(call.id); };
  if (std::ranges::none_of(batch, known)) {
    halved_ = std::max<std::size_t>(std::min(batch.size(), MostRecords(now)) / 2, 1);
    halved_until_ = now + kHalvedFor;
  }
  for (const HandlerCall& call : batch) in_halves_.insert(call.id);
  const auto middle = batch.begin() + static_cast<std::ptrdiff_t>((batch.size() + 1) / 2);
  CallBatch second(std::make_move_iterator(middle), std::make_move_iterator(batch.end()));
  batch.erase(middle, batch.end());
  if (!second.empty()) PutBack(std::move(second));
  if (!batch.empty()) PutBack(std::move(batch));
  most_ = MostRecords(now);
  for (auto group = groups_.begin(); group != groups_.end(); ++group) {
    FillAgain(group->second);
    by_due_.emplace(std::pair(group->second.due, group->second.number), group);
  }
}

bool BatchQueue::Remove(std::uint64_t id) {
  const auto is_it = [id](const HandlerCall& call) { return call.id == id; };
  if (std::erase_if(alone_, is_it) > 0) return true;
  for (auto batch = again_.begin(); batch != again_.end(); ++batch) {
    if (std::erase_if(*batch, is_it) == 0) continue;
    if (batch->empty()) again_.erase(batch);
    return true;
  }
  for (auto group = groups_.begin(); group != groups_.end(); ++group) {
    auto& calls = group->second.calls;
    if (std::erase_if(calls, [&](const Waiting& one) { return is_it(one.call); }) == 0) continue;
    if (calls.empty()) {
      Erase(group);
    } else {
      FillAgain(group->second);
      by_due_.emplace(std::pair(group->second.due, group->second.number), group);
    }
    return true;
  }
  return false;
}

void BatchQueue::Clear() {
  again_.clear();
  alone_.clear();
  by_due_.clear();
  groups_.clear();
}

std::size_t BatchQueue::MostRecords(Instant now) const {
  const auto most = static_cast<std::size_t>(std::max(options_.max_records, 1));
  return now < halved_until_ ? std::min(most, halved_) : most;
}

Instant BatchQueue::Next(Instant /*now*/) const {
  if (!again_.empty() || !alone_.empty()) return rate_.NextCall();
  if (by_due_.empty()) return Instant::max();
  return std::max(by_due_.begin()->first.first, rate_.NextCall());
}

BatchQueue::Taken BatchQueue::Take(Instant now) {
  Taken taken;
  most_ = MostRecords(now);
  while (taken.calls.empty() && Due(now)) {
    for (HandlerCall& call : TakeFirst()) {
      const bool late = call.valid_until <= now && !Planted("late_call_goes_out");
      (late ? taken.late : taken.calls).push_back(std::move(call));
    }
  }
  return taken;
}

CallBatch BatchQueue::TakeFirst() {
  CallBatch batch;
  if (!again_.empty()) {
    batch = std::move(again_.front());
    again_.pop_front();
  } else if (!alone_.empty()) {
    batch.push_back(std::move(alone_.front()));
    alone_.pop_front();
  } else {
    const auto from = by_due_.begin()->second;
    Group& group = from->second;
    batch.reserve(group.records);
    for (std::size_t i = 0; i < group.records; ++i) {
      batch.push_back(std::move(group.calls.front().call));
      group.calls.pop_front();
    }
    if (group.calls.empty()) {
      Erase(from);
    } else {
      FillAgain(group);
      by_due_.emplace(std::pair(group.due, group.number), from);
    }
  }
  return batch;
}

}  // namespace fencepost::consumer
