// Calls that wait to go out, several in one request where the handler takes batches: as many as
// wait and share a request, up to max_records, once the first has waited for `linger`, or for half
// of what was left of its lease; by a rate of requests. Of batches that are due the first that
// became so. Times are CLOCK_BOOTTIME's. Sans-IO, a value; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
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
  // It goes out again as it is, first and without a wait.
  void PutBack(CallBatch batch) { again_.push_front(std::move(batch)); }
  // It was too much for the receiver: its halves go out first, and none is larger for a while. What
  // is halved again says nothing of other batches: one of its records may be too much by itself.
  void Halve(CallBatch batch, Instant now);
  bool Remove(std::uint64_t id);  // a call; false: it does not wait here
  void Clear();

  // When Take gives a batch, if no further call comes; max(): it gives none.
  [[nodiscard]] Instant Next(Instant now) const;
  [[nodiscard]] bool Due(Instant now) const { return Next(now) <= now; }
  struct Taken {
    CallBatch calls;  // empty: none is due
    CallBatch late;   // their leases have ended meanwhile (HandlerCall::valid_until)
  };
  Taken Take(Instant now);
  // A request went out: it counts against the rate.
  void OnSent(Instant now) { rate_.OnCall(now); }

 private:
  struct Waiting {
    HandlerCall call;
    Instant since;
    Instant until;  // it waits no longer for others
  };
  // Calls that share their requests, and how far the next batch has been filled with them.
  struct Group {
    std::uint64_t number = 0;
    std::deque<Waiting> calls;  // never empty
    std::size_t records = 0;
    std::size_t bytes = 0;
    std::optional<Instant> full_since;
    Instant due;  // of the next batch: since it is full, or its first call waits no longer
  };
  using Groups = std::unordered_map<std::string, Group>;
  void Fill(Group& group);
  void FillAgain(Group& group);
  void Erase(Groups::iterator group);
  CallBatch TakeFirst();
  [[nodiscard]] std::size_t MostRecords(Instant now) const;

  const BatchOptions options_;
  RateLimit rate_;
  Shared shared_;
  std::deque<CallBatch> again_;    // before all others
  std::deque<HandlerCall> alone_;  // each is a batch; before the groups
  Groups groups_;
  std::map<std::pair<Instant, std::uint64_t>, Groups::iterator> by_due_;  // and by number
  std::uint64_t made_ = 0;                                                // groups
  std::size_t most_ = 1;                                                  // records of a batch, now
  std::size_t halved_ = 0;
  Instant halved_until_{};
  std::unordered_set<std::uint64_t> in_halves_;  // calls, until then
};

}  // namespace fencepost::consumer
