// An output that does what a test says, as far as a WriteRetry can tell one from another: a ledger
// in which a transaction happens at one moment or not at all, and records that it refuses, finds
// locked or takes long for. Naive on purpose; it is what WriteRetry is judged by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "consumer/outputs/write_retry.h"

namespace fencepost::consumer {

// Items by number; their ids are the numbers.
class Items {
 public:
  struct Item {
    int id = 0;
    std::uint64_t chain = 0;
  };
  Items() = default;
  Items(std::initializer_list<Item> items) {
    for (const Item& item : items) Add(item.id, item.chain);
  }
  explicit Items(const std::vector<int>& ids, std::int32_t partition = 0)
      : where_{.topic = "orders", .partition = partition} {
    for (const int id : ids) Add(id);
  }
  Items(const Items&) = delete;
  Items& operator=(const Items&) = delete;

  void Add(int id, std::uint64_t chain = 0) {
    const std::string& kept = ids_.emplace_back(std::to_string(id));
    Record& record = records_.emplace_back();
    record.offset = id;
    items_.push_back({.record = &record, .where = &where_, .record_id = kept, .chain = chain});
  }
  static std::vector<int> Range(int from, int to) {
    std::vector<int> all;
    for (int i = from; i < to; ++i) all.push_back(i);
    return all;
  }
  [[nodiscard]] const std::vector<WriteItem>& items() const { return items_; }

 private:
  const TopicPartition where_{.topic = "orders", .partition = 0};
  std::deque<std::string> ids_;
  std::deque<Record> records_;
  std::vector<WriteItem> items_;
};

class ScriptedTable final : public Output {
 public:
  using Outcomes = tl::expected<std::vector<WriteOutcome>, OutputError>;

  std::set<int> fixed_by_prepare;                      // they are refused no more
  std::set<int> refused, locked, conflicting, unruly;  // unruly: a selector refuses it
  std::map<int, int> cost;                             // else 1
  int most_cost = 1 << 30;                             // of one transaction
  bool refuses_all = false;
  bool deletions = false;                   // nothing takes rows
  bool savepoints = true;                   // it can write apart
  std::size_t most_refused = 16;            // that it finds apart where it takes none
  std::size_t most_items = 1 << 30;         // a transaction takes the first so many
  std::string kind;                         // of its refusals
  std::map<int, std::string> words;         // of these, else "refused"
  std::deque<OutputError> failures;         // of the next transactions, before anything else
  std::deque<OutputError> lookup_failures;  // of the next look-ups
  bool unknown = false;                     // too slow is without an answer
  std::vector<std::string> held_after;      // each transaction

  std::set<int> committed;
  std::map<std::uint64_t, std::vector<int>> order;  // of each chain
  int transactions = 0;
  int prepared = 0;
  std::vector<std::size_t> sizes;

  static OutputError Failed(WriteFailure failure, const std::string& what = "no") {
    return {.error = {.code = "x", .what = what, .where = "", .hint = ""}, .failure = failure};
  }

  [[nodiscard]] std::size_t max_records() const override { return 500; }
  tl::expected<void, OutputError> Prepare() override {
    ++prepared;
    for (const int id : fixed_by_prepare) refused.erase(id);
    return {};
  }
  void Interrupt() override {}
  [[nodiscard]] std::string HeldBack() const override {
    const auto done = static_cast<std::size_t>(transactions);
    return done == 0 || done > held_after.size() ? "" : held_after[done - 1];
  }
  tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Lookup(
      const std::vector<std::string>& ids) override {
    if (lookup_failures.empty()) return Output::Lookup(ids);
    OutputError error = lookup_failures.front();
    lookup_failures.pop_front();
    return tl::unexpected(std::move(error));
  }
  Outcomes Write(const WriteRequest& request) override {
    ++transactions;
    sizes.push_back(request.items.size());
    if (!failures.empty()) {
      OutputError error = failures.front();
      failures.pop_front();
      return tl::unexpected(std::move(error));
    }
    if (Any(request, unruly)) return Unruly(request);
    const std::size_t size = std::min(request.items.size(), most_items);
    if (request.apart && savepoints) return Apart(request, size);
    if (auto failed = Failure(request, size)) return tl::unexpected(*failed);
    return Commit(request, size);
  }

 private:
  static int Number(const WriteItem& item) { return std::stoi(std::string(item.record_id)); }
  static bool Any(const WriteRequest& request, const std::set<int>& ids) {
    return std::ranges::any_of(request.items,
                               [&](const WriteItem& item) { return ids.contains(Number(item)); });
  }
  Outcomes Unruly(const WriteRequest& request) const {
    std::vector<WriteOutcome> outcomes;
    for (const WriteItem& item : request.items) {
      const bool bad = unruly.contains(Number(item));
      outcomes.push_back({.result = bad ? WriteResult::kBadRecord : WriteResult::kNotWritten});
    }
    return outcomes;
  }
  std::optional<OutputError> Failure(const WriteRequest& request, std::size_t size) const {
    int total = 0;
    std::optional<OutputError> error;
    for (std::size_t i = 0; i < size && !error; ++i) {
      const int id = Number(request.items[i]);
      if (committed.contains(id)) continue;
      total += cost.contains(id) ? cost.at(id) : 1;
      if (total > most_cost) {
        error = Failed(unknown ? WriteFailure::kClientTimeout : WriteFailure::kTooSlow, "slow");
        error->unanswered = unknown;
      } else if (locked.contains(id)) {
        error = Failed(WriteFailure::kLocked, "locked");
      } else if (refuses_all || refused.contains(id)) {
        error = Failed(WriteFailure::kRefused, words.contains(id) ? words.at(id) : "refused");
        error->detail = fmt::format("refused {}", id);
        error->kind = kind;
      }
    }
    return error;
  }
  // Each of the first so many alone, and none behind one that is refused.
  Outcomes Apart(const WriteRequest& request, std::size_t size) {
    WriteRequest taken;
    std::vector<std::size_t> places;
    std::vector<WriteOutcome> outcomes(request.items.size(), {.result = WriteResult::kNotWritten});
    std::set<std::uint64_t> held;
    std::size_t refusals = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const WriteItem& item = request.items[i];
      if (item.chain != 0 && held.contains(item.chain)) continue;
      const auto failed = Failure({.items = {item}, .offsets = {}}, 1);
      if (failed && failed->failure != WriteFailure::kRefused) return tl::unexpected(*failed);
      if (!failed) {
        taken.items.push_back(item);
        places.push_back(i);
        continue;
      }
      outcomes[i] = {.result = WriteResult::kBadRecord,
                     .detail = failed->detail,
                     .reason = DeadLetterReason::kOutput,
                     .shown = failed->error.what};
      held.insert(item.chain);
      if (++refusals == most_refused && taken.items.empty()) return outcomes;
    }
    if (auto failed = Failure(taken, taken.items.size())) return tl::unexpected(*failed);
    const Outcomes written = Commit(taken, taken.items.size());
    for (std::size_t i = 0; i < places.size(); ++i) outcomes[places[i]] = written->at(i);
    return outcomes;
  }
  Outcomes Commit(const WriteRequest& request, std::size_t size) {
    std::vector<WriteOutcome> outcomes(request.items.size(), {.result = WriteResult::kNotWritten});
    std::set<std::uint64_t> held;
    for (std::size_t i = 0; i < size; ++i) {
      const WriteItem& item = request.items[i];
      if (item.chain != 0 && held.contains(item.chain)) continue;
      const int id = Number(item);
      if (conflicting.contains(id)) {
        outcomes[i].result = WriteResult::kIdConflict;
        held.insert(item.chain);
        continue;
      }
      const bool fresh = committed.insert(id).second;
      outcomes[i] = {.result = fresh ? WriteResult::kCommitted : WriteResult::kOwnEarlier,
                     .took_rows = !deletions};
      if (fresh && item.chain != 0) order[item.chain].push_back(id);
    }
    return outcomes;
  }
};

// A WriteRetry and a table, batch after batch.
class PlanRun {
 public:
  explicit PlanRun(ScriptedTable& table, std::size_t most_in_a_row = kMostInARow)
      : table_(table), retry_(table.max_records(), most_in_a_row) {}

  // The outcomes; waits and reasons are kept.
  std::vector<WriteOutcome> Write(const Items& items, std::uint64_t answered) {
    const WriteRequest request{.items = items.items(), .offsets = {}};
    retry_.Begin(++batch_, answered, request.items, now);
    waits.clear();
    reason.clear();
    for (WriteRetry::Step step = retry_.Next();; step = retry_.Next()) {
      if (!step.reason.empty()) reason = step.reason;
      if (step.kind == WriteRetry::Step::Kind::kDone) return retry_.Take();
      if (step.kind == WriteRetry::Step::Kind::kWait) {
        waits.push_back(step.wait);
        continue;
      }
      auto outcomes = WriteStep(table_, request, step);
      outcomes ? retry_.OnWritten(std::move(*outcomes)) : retry_.OnFailed(outcomes.error());
    }
  }
  // With all earlier batches answered.
  std::vector<WriteOutcome> Write(const Items& items) { return Write(items, batch_); }
  std::vector<WriteResult> Results(const Items& items) {
    std::vector<WriteResult> results;
    for (const WriteOutcome& outcome : Write(items)) results.push_back(outcome.result);
    return results;
  }
  std::vector<WriteResult> Results(const std::vector<int>& ids) { return Results(Items(ids)); }
  [[nodiscard]] const WriteRetry& retry() const { return retry_; }
  [[nodiscard]] std::uint64_t batch() const { return batch_; }

  std::vector<WriteRetry::Wait> waits;
  std::string reason;
  locking::Instant now{};

 private:
  ScriptedTable& table_;
  WriteRetry retry_;
  std::uint64_t batch_ = 0;
};

}  // namespace fencepost::consumer
