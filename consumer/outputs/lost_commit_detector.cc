#include "consumer/outputs/lost_commit_detector.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

void LostCommitDetector::Remember(locking::Now now, const BatchRows& rows,
                                  const std::vector<WriteOutcome>& outcomes) {
  Begin(now);
  for (std::size_t record = 0; record < rows.size(); ++record) {
    const WriteResult result = outcomes[rows.index(record)].result;
    if (!EffectIsWritten(result)) continue;
    const WriteItem& item = rows.item(record);
    Add(*item.where, item.record->offset, item.record_id, result == WriteResult::kCommitted,
        item.token);
  }
}

void LostCommitDetector::Begin(locking::Now now) {
  if (commits_.size() == most_) {
    commits_.pop_front();
    dropped_ = true;
  }
  commits_.push_back({.at = now, .ids = {}, .tokens = {}, .lowest = {}});
}

std::uint32_t LostCommitDetector::PlaceOf(const TopicPartition& where) {
  for (std::uint32_t place = 0; place < partitions_.size(); ++place) {
    if (partitions_[place].partition == where.partition &&
        partitions_[place].topic == where.topic) {
      return place;
    }
  }
  partitions_.push_back(where);
  return static_cast<std::uint32_t>(partitions_.size() - 1);
}

void LostCommitDetector::Add(const TopicPartition& where, Offset offset, std::string_view id,
                             bool inserted, locking::Token token) {
  FENCEPOST_CHECK(!commits_.empty(), "a record of no commit");
  Commit& commit = commits_.back();
  if (inserted && commit.ids.size() < kIds) {
    commit.ids.emplace_back(id);
    commit.tokens.push_back(token);
  }
  for (Lowest& lowest : commit.lowest) {
    const TopicPartition& known = partitions_[lowest.partition];
    if (known.partition != where.partition || known.topic != where.topic) continue;
    lowest.offset = std::min(lowest.offset, offset);
    return;
  }
  commit.lowest.push_back({PlaceOf(where), offset});
}

void LostCommitDetector::Forget() {
  commits_.clear();
  partitions_.clear();
  dropped_ = true;
}

LostCommitDetector::Search LostCommitDetector::Look(locking::Instant now) const {
  Search search;
  search.detector_ = this;
  for (std::size_t at = 0; at < commits_.size(); ++at) {
    const bool young = !keep_ || now - commits_[at].at.boot < *keep_ / 2;
    if (young && !commits_[at].ids.empty()) search.asked_.push_back(at);
  }
  search.missing_ = search.asked_.size();
  search.done_ = search.asked_.empty();
  return search;
}

// The newest one first: mostly it is there, and that is all.
std::size_t LostCommitDetector::Search::Asked() const {
  return missing_ == asked_.size() ? asked_.size() - 1 : known_ + (missing_ - known_) / 2;
}

const std::vector<std::string>* LostCommitDetector::Search::Ask() const {
  return done_ ? nullptr : &detector_->commits_[asked_[Asked()]].ids;
}

bool LostCommitDetector::Search::IsOurs(std::size_t id, locking::Token token) const {
  return detector_->commits_[asked_[Asked()]].tokens[id] == token ||
         Planted("anothers_row_is_ones_own");
}

void LostCommitDetector::Search::Answer(bool one_is_there) {
  const std::size_t asked = Asked();
  (one_is_there ? known_ : missing_) = one_is_there ? asked + 1 : asked;
  done_ = known_ >= missing_;
}

std::optional<LostCommits> LostCommitDetector::Search::Lost() const {
  if (missing_ == asked_.size() || Planted("lost_commits_go_unsaid")) return std::nullopt;
  const auto& commits = detector_->commits_;
  // Commits without a row of their own that lie between the last one there and the first one gone
  // are of either side: they count for the offsets.
  const std::size_t doubtful = missing_ == 0 ? 0 : asked_[missing_ - 1] + 1;
  const std::size_t first = asked_[missing_];
  LostCommits lost{.commits = commits.size() - first,
                   .at_least = missing_ == 0 && (first > 0 || detector_->dropped_),
                   .since = commits[first].at.wall,
                   .back_to = {}};
  std::map<std::uint32_t, Offset> lowest;
  for (std::size_t at = doubtful; at < commits.size(); ++at) {
    for (const Lowest& one : commits[at].lowest) {
      const auto [known, is_new] = lowest.emplace(one.partition, one.offset);
      if (is_new) continue;
      const bool highest = Planted("highest_lost_offset_is_named");
      known->second =
          highest ? std::max(known->second, one.offset) : std::min(known->second, one.offset);
    }
  }
  for (const auto& [place, offset] : lowest) {
    lost.back_to.push_back({detector_->partitions_[place], offset});
  }
  std::ranges::sort(lost.back_to, {}, [](const SourceOffset& one) {
    return std::pair(one.where.topic, one.where.partition);
  });
  return lost;
}

Error LostCommitsError(const LostCommits& lost, std::string where, std::string_view how,
                       std::string_view group) {
  std::string lines;
  for (const SourceOffset& one : lost.back_to) {
    lines += fmt::format("{}{},{},{}", lines.empty() ? "" : " ", one.where.topic,
                         one.where.partition, one.next);
  }
  return {.code = "lost_commits",
          .what = fmt::format(
              "the database lost {}{} commit{} of this worker since {:%Y-%m-%dT%H:%M:%SZ}{}: was a "
              "standby promoted that had not received them, or a backup restored?",
              lost.at_least ? "at least " : "", lost.commits, lost.commits == 1 ? "" : "s",
              fmt::gmtime(std::chrono::system_clock::to_time_t(lost.since)),
              how.empty() ? "" : fmt::format(" ({})", how)),
          .where = std::move(where),
          .hint = fmt::format(
              "stop all workers of the group, put the lowest offset that any of them names for a "
              "partition into a file (one TOPIC,PARTITION,OFFSET a line; here {}{}), without the "
              "partitions where the group's own offset is lower, with 0 where it has none, and run "
              "kafka-consumer-groups --group {} --reset-offsets --from-file FILE --execute: what "
              "is in the ledger is skipped",
              lines, lost.at_least ? ", or earlier" : "", group.empty() ? "GROUP" : group)};
}

}  // namespace fencepost::consumer
