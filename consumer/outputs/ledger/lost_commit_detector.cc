#include "consumer/outputs/ledger/lost_commit_detector.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {

void LostCommitDetector::Remember(locking::Now now, const std::vector<WriteItem>& items,
                                  const std::vector<WriteOutcome>& outcomes) {
  // Where nothing was written, by itself or by whoever made the row that was found, nothing can be
  // lost.
  const auto stands = [](const WriteOutcome& one) {
    return one.result == WriteResult::kCommitted ||
           (EffectIsWritten(one.result) && one.stands != locking::Token());
  };
  if (std::ranges::none_of(outcomes, stands)) return;
  if (commits_.size() == most_) {
    commits_.pop_front();
    ++first_;
    dropped_ = true;
  }
  commits_.push_back({.at = now, .ids = {}, .tokens = {}, .lowest = {}});
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (stands(outcomes[i])) Add(items[i], outcomes[i]);
  }
  if (!commits_.back().ids.empty()) found_.clear();
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

void LostCommitDetector::Add(const WriteItem& item, const WriteOutcome& outcome) {
  Commit& commit = commits_.back();
  const bool inserted = outcome.result == WriteResult::kCommitted;
  if (inserted || Planted("found_row_is_evidence")) {
    if (commit.ids.size() < kIds) {
      commit.ids.emplace_back(item.record_id);
      commit.tokens.push_back(inserted ? item.token : outcome.stands);
    }
  } else if (!Planted("found_row_is_not_asked_for")) {
    if (found_.size() == most_) found_.pop_front();
    found_.push_back({.commit = first_ + commits_.size() - 1,
                      .id = std::string(item.record_id),
                      .token = outcome.stands});
  }
  const TopicPartition& where = *item.where;
  const Offset offset = item.record->offset;
  for (Lowest& lowest : commit.lowest) {
    const TopicPartition& known = partitions_[lowest.partition];
    if (known.partition != where.partition || known.topic != where.topic) continue;
    lowest.offset = std::min(lowest.offset, offset);
    return;
  }
  commit.lowest.push_back({PlaceOf(where), offset});
}

void LostCommitDetector::Forget() {
  first_ += commits_.size();
  commits_.clear();
  found_.clear();
  partitions_.clear();
  dropped_ = true;
}

bool LostCommitDetector::Young(const Commit& commit, locking::Now now) const {
  return !keep_ || now.boot - commit.at.boot < *keep_ / 2;
}

bool LostCommitDetector::Young(const Found& found, locking::Now now) const {
  if (Planted("found_row_is_as_young_as_its_look")) return Young(commits_.back(), now);
  return !keep_ || now.wall - found.token.wall() < *keep_ / 2;
}

LostCommitDetector::Search LostCommitDetector::Look(locking::Now now) const {
  Search search;
  search.detector_ = this;
  for (std::size_t at = 0; at < commits_.size(); ++at) {
    if (!commits_[at].ids.empty() && Young(commits_[at], now)) search.asked_.push_back(at);
  }
  search.missing_ = search.asked_.size();
  for (const Found& found : found_) {
    if (found.commit < first_ || !Young(found, now)) continue;
    search.found_.push_back(found.id);
    search.found_at_.push_back(static_cast<std::size_t>(found.commit - first_));
  }
  return search;
}

// The newest one first: mostly it is there, and that is all.
std::size_t LostCommitDetector::Search::Asked() const {
  return missing_ == asked_.size() ? asked_.size() - 1 : known_ + (missing_ - known_) / 2;
}

const std::vector<std::string>* LostCommitDetector::Search::Ask() const {
  if (known_ < missing_) return &detector_->commits_[asked_[Asked()]].ids;
  const bool asks_found = missing_ == asked_.size() && !found_.empty() && !found_asked_;
  return asks_found ? &found_ : nullptr;
}

void LostCommitDetector::Search::Answer(const std::vector<std::optional<locking::Token>>& rows) {
  if (known_ == missing_) {
    found_asked_ = true;
    for (std::size_t i = rows.size(); i-- > 0;) {
      if (!rows[i]) found_missing_ = found_at_[i];
    }
    return;
  }
  const std::size_t asked = Asked();
  // Another worker that did a record again, after the loss, wrote it under another token.
  const std::vector<locking::Token>& tokens = detector_->commits_[asked_[asked]].tokens;
  bool there = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    there = there || (rows[i] && (rows[i] == tokens[i] || Planted("anothers_row_is_ones_own")));
  }
  (there ? known_ : missing_) = there ? asked + 1 : asked;
}

std::optional<LostCommits> LostCommitDetector::Search::Lost() const {
  const bool commit_is_gone = missing_ < asked_.size();
  if (!commit_is_gone && !found_missing_) return std::nullopt;
  if (Planted("lost_commits_go_unsaid")) return std::nullopt;
  const auto& commits = detector_->commits_;
  // Commits that inserted no row and lie between the last one there and the first one gone are of
  // either side: they count for the offsets.
  const std::size_t doubtful = missing_ == 0 ? 0 : asked_[missing_ - 1] + 1;
  const std::size_t first = commit_is_gone ? asked_[missing_] : *found_missing_;
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
