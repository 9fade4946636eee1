// What a worker remembers of its newest commits, to see whether a database that it meets again
// still has them: after a failover to a standby that had not received them, or the restore of a
// backup, the effects are gone, and the group's offsets have passed their records.
//
// Commits of one connection vanish as a suffix: a database that goes back, goes back to a moment.
// So one look at the newest one tells whether something is missing, and a binary search finds what.
//
// A transaction also finds rows: its own, of a COMMIT that was not answered, or those of others. A
// found row is as old as its own transaction, whenever it was looked at. So:
// - It is kept apart, and is evidence of no other commit.
// - A commit that inserted rows behind the look is evidence of it: it is asked for only while there
//   is none, and each by its id. Whoever wrote the row that is there, its effect is there.
// - It is as old as its token, which was drawn before it was written, and not as young as the look:
//   that it was pruned since is no loss.
//
// Sans-IO: the caller asks the ledger. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

  // `keep`: what is older than half of it is not asked for, since it may have been pruned. `most`:
  // of commits, and of found rows.
  explicit LostCommitDetector(std::optional<std::chrono::seconds> keep, std::size_t most = kCommits)
      : keep_(keep), most_(most) {}

  // The transaction of these items was acknowledged, with these outcomes.
  void Remember(locking::Now now, const std::vector<WriteItem>& items,
                const std::vector<WriteOutcome>& outcomes);
  // What is missing is explained otherwise.
  void Forget();

  // Ask() until it says nullptr, each time Answer()ed; then Lost() tells.
  class Search {
   public:
    // Ids of one commit, or of found rows.
    [[nodiscard]] const std::vector<std::string>* Ask() const;
    // The tokens of the rows that are there under these ids.
    void Answer(const std::vector<std::optional<locking::Token>>& rows);
    [[nodiscard]] std::optional<LostCommits> Lost() const;

   private:
    friend class LostCommitDetector;
    [[nodiscard]] std::size_t Asked() const;
    const LostCommitDetector* detector_ = nullptr;
    std::vector<std::size_t> asked_;  // places of the commits that can be asked for, oldest first
    // All of asked_ before known_ are there, all from missing_ on are gone.
    std::size_t known_ = 0;
    std::size_t missing_ = 0;
    // Asked for where no commit is missing.
    std::vector<std::string> found_;
    std::vector<std::size_t> found_at_;  // places of the commits that found them
    bool found_asked_ = false;
    std::optional<std::size_t> found_missing_;  // the place of the first one
  };
  [[nodiscard]] Search Look(locking::Now now) const;  // valid until the next Remember or Forget

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
  struct Found {
    std::uint64_t commit = 0;  // the number of the one that found it
    std::string id;
    locking::Token token;  // of the row
  };
  void Add(const WriteItem& item, const WriteOutcome& outcome);
  std::uint32_t PlaceOf(const TopicPartition& where);
  [[nodiscard]] bool Young(const Commit& commit, locking::Now now) const;
  [[nodiscard]] bool Young(const Found& found, locking::Now now) const;

  const std::optional<std::chrono::seconds> keep_;
  const std::size_t most_;
  std::deque<Commit> commits_;
  std::uint64_t first_ = 0;  // the number of the first of them
  std::deque<Found> found_;  // since the newest commit that inserted rows
  std::vector<TopicPartition> partitions_;
  bool dropped_ = false;  // there were older ones
};

// The worker's last words, in one line. `where`: HOST:PORT/DATABASE or the file; `how`: what else
// is known, as "timeline 1 -> 2", or "".
Error LostCommitsError(const LostCommits& lost, std::string where, std::string_view how,
                       std::string_view group);

}  // namespace fencepost::consumer
