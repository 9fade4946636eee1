#include "consumer/handlers/batch_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

std::deque<BatchQueue::Waiting>& BatchQueue::PlaceFor(const HandlerCall& call) {
  if (call.alone) return alone_;
  std::string shared = shared_ && options_.max_records > 1 ? shared_(call) : "";
  const auto at = std::ranges::find(groups_, shared, &Group::shared);
  if (at != groups_.end()) return at->calls;
  return groups_.emplace_back(std::move(shared)).calls;
}

void BatchQueue::Add(HandlerCall call, Instant now) {
  std::deque<Waiting>& place = PlaceFor(call);
  place.push_back({std::move(call), now});
}

void BatchQueue::PutBack(CallBatch batch) {
  for (auto call = batch.rbegin(); call != batch.rend(); ++call) {
    std::deque<Waiting>& place = PlaceFor(*call);
    place.push_front({std::move(*call), Instant()});
  }
}

void BatchQueue::Halve(CallBatch batch, Instant now) {
  halved_ = std::max<std::size_t>(batch.size() / 2, 1);
  halved_until_ = now + kHalvedFor;
  PutBack(std::move(batch));
}

bool BatchQueue::Remove(std::uint64_t id) {
  const auto is_it = [id](const Waiting& waiting) { return waiting.call.id == id; };
  std::size_t removed = std::erase_if(alone_, is_it);
  for (Group& group : groups_) removed += std::erase_if(group.calls, is_it);
  std::erase_if(groups_, [](const Group& group) { return group.calls.empty(); });
  return removed > 0;
}

void BatchQueue::Clear() {
  alone_.clear();
  groups_.clear();
}

std::size_t BatchQueue::MostRecords(Instant now) const {
  const auto most = static_cast<std::size_t>(std::max(options_.max_records, 1));
  return now < halved_until_ ? std::min(most, halved_) : most;
}

BatchQueue::Filled BatchQueue::NextBatch(const Group& group, Instant now) const {
  const std::size_t most = MostRecords(now);
  std::size_t bytes = 0;
  std::size_t records = 0;
  while (records < std::min(group.calls.size(), most)) {
    bytes += SizeOf(group.calls[records].call);
    if (records > 0 && bytes > kMostBytes) return {records, Instant()};
    ++records;
  }
  return {records, records == most ? Instant() : group.calls.front().since + options_.linger};
}

std::vector<BatchQueue::Group>::const_iterator BatchQueue::First(Instant now) const {
  return std::ranges::min_element(groups_, {}, [&](const Group& group) {
    return std::pair(NextBatch(group, now).due, group.calls.front().since);
  });
}

Instant BatchQueue::Next(Instant now) const {
  if (!alone_.empty()) return rate_.NextCall();
  const auto first = First(now);
  if (first == groups_.end()) return Instant::max();
  return std::max(NextBatch(*first, now).due, rate_.NextCall());
}

CallBatch BatchQueue::Take(Instant now) {
  CallBatch batch;
  if (!Due(now)) return batch;
  rate_.OnCall(now);
  if (!alone_.empty()) {
    batch.push_back(std::move(alone_.front().call));
    alone_.pop_front();
    return batch;
  }
  const auto from = groups_.begin() + (First(now) - groups_.cbegin());
  const std::size_t size = NextBatch(*from, now).records;
  batch.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    batch.push_back(std::move(from->calls.front().call));
    from->calls.pop_front();
  }
  if (from->calls.empty()) groups_.erase(from);
  return batch;
}

}  // namespace fencepost::consumer
