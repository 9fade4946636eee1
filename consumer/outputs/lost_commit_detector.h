// What a worker remembers of its newest commits, to see whether a database that it meets again
// still has them: after a failover to a standby that had not received them, or the restore of a
// backup, the effects are gone, and the group's offsets have passed their records.
//
// Commits of one connection vanish as a suffix: a database that goes back, goes back to a moment.
// So one look at the newest one tells whether something is missing, and a binary search finds what.
// Sans-IO: the caller asks the ledger. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/outputs/batch_rows.h"
#include "consumer/outputs/output.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

struct LostCommits {
  std::size_t commits = 0;
  bool at_least = false;              // older ones, which nothing is remembered of, may be gone too
  locking::WallTime since{};          // when the first of them was acknowledged
  std::vector<SourceOffset> back_to;  // for each partition in them, the lowest offset
};

class LostCommitDetector {
 public:
  static constexpr std::size_t kCommits = 4096;  // about 1 MiB
  static constexpr std::size_t kIds = 3;

  // `keep`: what is older than half of it is not asked for, since it may have been pruned.
  explicit LostCommitDetector(std::optional<std::chrono::seconds> keep, std::size_t most = kCommits)
      : keep_(keep), most_(most) {}

  // The transaction of these rows was acknowledged, with these outcomes of its request.
  void Remember(locking::Now now, const BatchRows& rows, const std::vector<WriteOutcome>& outcomes);
  // The same by hand: a transaction was acknowledged; then each record whose effect was written by
  // it. `inserted`: its ledger row is of this transaction.
  void Begin(locking::Now now);
  void Add(const TopicPartition& where, Offset offset, std::string_view id, bool inserted,
           locking::Token token = {});
  // What is missing is explained otherwise.
  void Forget();

  // Ask() until it says nullptr, each time Answer()ed; then Lost() tells.
  class Search {
   public:
    // Ids of one commit.
    [[nodiscard]] const std::vector<std::string>* Ask() const;
    // The row that is there for this one of the ids is the one that was written: another worker
    // that did the record again, after the loss, wrote it under another token.
    [[nodiscard]] bool IsOurs(std::size_t id, locking::Token token) const;
    void Answer(bool one_is_there);
    [[nodiscard]] std::optional<LostCommits> Lost() const;

   private:
    friend class LostCommitDetector;
    [[nodiscard]] std::size_t Asked() const;
    const LostCommitDetector* detector_ = nullptr;
    std::vector<std::size_t> asked_;  // places of the commits that can be asked for, oldest first
    // All of asked_ before known_ are there, all from missing_ on are gone.
    std::size_t known_ = 0;
    std::size_t missing_ = 0;
    bool done_ = true;
  };
  [[nodiscard]] Search Look(locking::Instant now) const;  // valid until the next Begin or Forget

 private:
  struct Lowest {
    std::uint32_t partition = 0;  // place in partitions_
    Offset offset = 0;
  };
  struct Commit {
    locking::Now at;
    std::vector<std::string> ids;        // up to kIds that it inserted
    std::vector<locking::Token> tokens;  // under which
    std::vector<Lowest> lowest;
  };
  std::uint32_t PlaceOf(const TopicPartition& where);

  const std::optional<std::chrono::seconds> keep_;
  const std::size_t most_;
  std::deque<Commit> commits_;
  std::vector<TopicPartition> partitions_;
  bool dropped_ = false;  // there were older ones
};

// The worker's last words, in one line. `where`: HOST:PORT/DATABASE or the file; `how`: what else
// is known, as "timeline 1 -> 2", or "".
Error LostCommitsError(const LostCommits& lost, std::string where, std::string_view how,
                       std::string_view group);

}  // namespace fencepost::consumer
