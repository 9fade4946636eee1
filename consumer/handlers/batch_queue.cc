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

void BatchQueue::Add(HandlerCall call, Instant now) {
  (call.alone ? alone_ : waiting_).push_back({std::move(call), now});
}

void BatchQueue::PutBack(CallBatch batch) {
  for (auto call = batch.rbegin(); call != batch.rend(); ++call) {
    (call->alone ? alone_ : waiting_).push_front({std::move(*call), Instant()});
  }
}

void BatchQueue::Halve(CallBatch batch, Instant now) {
  halved_ = std::max<std::size_t>(batch.size() / 2, 1);
  halved_until_ = now + kHalvedFor;
  PutBack(std::move(batch));
}

bool BatchQueue::Remove(std::uint64_t id) {
  const auto is_it = [id](const Waiting& waiting) { return waiting.call.id == id; };
  return std::erase_if(alone_, is_it) + std::erase_if(waiting_, is_it) > 0;
}

void BatchQueue::Clear() {
  alone_.clear();
  waiting_.clear();
}

std::size_t BatchQueue::MostRecords(Instant now) const {
  const auto most = static_cast<std::size_t>(std::max(options_.max_records, 1));
  return now < halved_until_ ? std::min(most, halved_) : most;
}

BatchQueue::Filled BatchQueue::NextBatch(Instant now) const {
  const std::size_t most = MostRecords(now);
  std::size_t bytes = 0;
  std::size_t records = 0;
  while (records < std::min(waiting_.size(), most)) {
    bytes += SizeOf(waiting_[records].call);
    if (records > 0 && bytes > kMostBytes) return {records, true};
    ++records;
  }
  return {records, records == most};
}

Instant BatchQueue::Next(Instant now) const {
  if (alone_.empty() && waiting_.empty()) return Instant::max();
  const bool full = !alone_.empty() || NextBatch(now).full;
  const Instant filled = full ? Instant() : waiting_.front().since + options_.linger;
  return std::max(filled, rate_.NextCall());
}

CallBatch BatchQueue::Take(Instant now) {
  CallBatch batch;
  if (!Due(now)) return batch;
  rate_.OnCall(now);
  std::deque<Waiting>& from = alone_.empty() ? waiting_ : alone_;
  const std::size_t size = alone_.empty() ? NextBatch(now).records : 1;
  batch.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    batch.push_back(std::move(from.front().call));
    from.pop_front();
  }
  return batch;
}

}  // namespace fencepost::consumer
