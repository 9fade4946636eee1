// Calls that wait to go out, several in one request where the handler takes batches: as many as
// wait and share a request, up to max_records, once the first has waited for `linger`; by a rate of
// requests. Sans-IO, a value; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/flow/ports/ports.h"
#include "consumer/handlers/rate_limit.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

using CallBatch = std::vector<HandlerCall>;
inline std::vector<std::string_view> RecordIds(const CallBatch& calls) {
  std::vector<std::string_view> ids;
  for (const HandlerCall& call : calls) ids.push_back(call.record_id);
  return ids;
}

class BatchQueue {
 public:
  // Of the records of a batch: as JSON text they may be six times as long, and a request that is
  // longer than an answer may be is refused. A larger record goes alone.
  static constexpr std::size_t kMostBytes = 2u << 20;
  static constexpr std::chrono::minutes kHalvedFor{1};

  explicit BatchQueue(const BatchOptions& options, double requests_a_second = 0);
  void SetRate(double requests_a_second) { rate_.Set(requests_a_second); }
  // What a request for the call has outside its body: one batch has calls of which it is the same.
  // Without it, all share their requests. Before the first Add.
  using Shared = std::function<std::string(const HandlerCall& call)>;
  void ShareBy(Shared shared) { shared_ = std::move(shared); }

  void Add(HandlerCall call, Instant now);
  // They go out first, without a wait.
  void PutBack(CallBatch batch);
  // … and no more than half as many at a time for a while: they were too much for the receiver.
  void Halve(CallBatch batch, Instant now);
  bool Remove(std::uint64_t id);  // a call; false: it does not wait here
  void Clear();

  // When Take gives a batch, if no further call comes; max(): it gives none.
  [[nodiscard]] Instant Next(Instant now) const;
  [[nodiscard]] bool Due(Instant now) const { return Next(now) <= now; }
  CallBatch Take(Instant now);  // empty: none is due

 private:
  struct Waiting {
    HandlerCall call;
    Instant since;
  };
  struct Group {
    std::string shared;
    std::deque<Waiting> calls;  // never empty
  };
  std::deque<Waiting>& PlaceFor(const HandlerCall& call);
  [[nodiscard]] std::size_t MostRecords(Instant now) const;
  struct Filled {
    std::size_t records = 0;
    Instant due;  // at once where no other can join them
  };
  [[nodiscard]] Filled NextBatch(const Group& group, Instant now) const;
  // The group whose batch is due first; groups_.end(): there is none.
  [[nodiscard]] std::vector<Group>::const_iterator First(Instant now) const;

  const BatchOptions options_;
  RateLimit rate_;
  Shared shared_;
  std::deque<Waiting> alone_;  // each is a batch; before the others
  std::vector<Group> groups_;
  std::size_t halved_ = 0;
  Instant halved_until_{};
};

}  // namespace fencepost::consumer
