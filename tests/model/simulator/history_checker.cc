#include "tests/model/simulator/history_checker.h"

#include <algorithm>

#include <fmt/format.h>

namespace fencepost::simulator {
namespace {

template <typename... Args>
std::optional<Complaint> Complain(std::string_view what, fmt::format_string<Args...> format,
                                  Args&&... args) {
  return Complaint{what, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace

void HistoryChecker::Send(Sent sent) {
  by_source_[sent.source] = history_.sent.size();
  history_.sent.push_back(std::move(sent));
}

std::optional<Complaint> HistoryChecker::See(Seen seen) {
  history_.seen.push_back(std::move(seen));
  const Seen& row = history_.seen.back();
  switch (row.kind) {
    case Seen::Kind::kOffset:
      return OnOffset(row);
    case Seen::Kind::kOffsetLost:
    case Seen::Kind::kOffsetSet:
      OnGoneBack(row);
      return std::nullopt;
    case Seen::Kind::kBegins:
      GiveUp(row);
      return std::nullopt;
    case Seen::Kind::kGone:
      OnGone(row);
      return std::nullopt;
    case Seen::Kind::kNoOutput:
      no_output_.insert(row.source);
      no_output_ids_.insert(history_.sent[by_source_.find(row.source)->second].id);
      return std::nullopt;
    case Seen::Kind::kReplaced:
      replaced_.insert(row.source);
      return std::nullopt;
    case Seen::Kind::kAnotherLog:
      OnAnotherLog(row);
      return std::nullopt;
    case Seen::Kind::kForgotten:
      OnForgotten(row);
      return std::nullopt;
    case Seen::Kind::kToldOfLog:
      return OnToldOfLog(row);
    case Seen::Kind::kAcknowledged:
      acknowledged_[{{row.worker, row.life}, row.id}] = row.at;
      return std::nullopt;
    case Seen::Kind::kEffectLost:
      OnEffectLost(row);
      return std::nullopt;
    case Seen::Kind::kRowLost:
      ever_lost_.insert(row.id);
      return std::nullopt;
    case Seen::Kind::kPruned:
      return OnPruned(row);
    case Seen::Kind::kUsed:
      return OnUsed(row);
    case Seen::Kind::kStopped:
      return OnStopped(row);
    default:
      break;
  }
  const auto found = by_source_.find(row.source);
  if (found == by_source_.end()) {
    return Complain("phantom", "{} was never sent", row.source);
  }
  const Sent& sent = history_.sent[found->second];
  if (row.kind == Seen::Kind::kLetter) return OnLetter(row);
  if (row.id != sent.id) {
    return Complain("phantom", "{} came as {}, but is {}", row.source, row.id, sent.id);
  }
  return row.kind == Seen::Kind::kCall ? OnCall(row) : OnEffect(row, sent);
}

std::optional<Complaint> HistoryChecker::OnCall(const Seen& seen) {
  std::uint64_t& last = tokens_[{seen.worker, seen.life, seen.id}];
  if (seen.token < last) {
    return Complain("token", "{} came with token {} after {}", seen.id, seen.token, last);
  }
  last = seen.token;
  return std::nullopt;
}

std::optional<Complaint> HistoryChecker::OnEffect(const Seen& seen, const Sent& sent) {
  const Doer doer{seen.worker, seen.life, seen.assignment};
  auto& of_source = effects_[seen.source];
  const bool again = !of_source.empty();
  of_source.insert(doer);
  const int times = ++effects_by_id_[seen.id];
  lost_.erase(seen.id);
  buried_.erase({{seen.worker, seen.life}, seen.id});
  if (promise_ == Promise::kOnce && (times > 1 || !MayComeAgain(seen))) {
    return Complain("doubled", "{} took effect again", seen.id);
  }
  if (OnTransactions(promise_) && again) {
    return Complain("doubled", "{} is there twice", seen.source);
  }
  const auto letters = letters_.find(seen.source);
  const bool ever = promise_ == Promise::kOncePerSource;
  if (letters != letters_.end() && (ever || letters->second.contains(doer))) {
    return Complain("both", "{} took effect and is a dead letter too", seen.source);
  }
  auto complaint = CheckRow(seen, sent);
  return complaint ? complaint : CheckOrder(seen, sent);
}

std::optional<Complaint> HistoryChecker::CheckRow(const Seen& seen, const Sent& sent) {
  if (sent.row.empty()) return std::nullopt;
  auto& row = rows_[sent.row];
  const bool newer =
      std::ranges::any_of(row, [&](const auto& change) { return change.second > sent.made; });
  if (newer != seen.lost_to_newer) {
    return Complain("past", "{} of {} {}", seen.source, sent.row,
                    newer ? "was put over a newer change" : "has lost to an older change");
  }
  if (!newer) row[seen.source] = sent.made;
  return std::nullopt;
}

// Also over refusals, crashes and restarts, where each takes effect once: nothing does behind what
// has not, unless that is a dead letter.
std::optional<Complaint> HistoryChecker::CheckOrder(const Seen& seen, const Sent& sent) {
  // What is done again comes behind what was not lost.
  if (sent.chain.empty() || ever_lost_.contains(sent.id) || pruned_.contains(sent.id)) {
    return std::nullopt;
  }
  const Doer doer{seen.worker, seen.life, seen.assignment};
  const auto [last, none] = last_of_assignment_.try_emplace({doer, sent.chain}, sent.offset);
  if (sent.offset < last->second) {
    return Complain("order", "{} took effect after {}", seen.source, last->second);
  }
  last->second = sent.offset;
  if (in_doubt_.contains(sent.partition)) return std::nullopt;  // whoever did it, and from where
  const auto [newest, first] = last_of_chain_.try_emplace(sent.chain, sent.offset);
  if (promise_ == Promise::kOnce && sent.offset < newest->second &&
      !letters_.contains(seen.source) && !given_up_.contains(seen.source)) {
    return Complain("order", "{} took effect after {} of its chain, whoever did it", seen.source,
                    newest->second);
  }
  newest->second = std::max(newest->second, sent.offset);
  return std::nullopt;
}

std::optional<Complaint> HistoryChecker::OnLetter(const Seen& seen) {
  const Doer doer{seen.worker, seen.life, seen.assignment};
  auto& letters = letters_[seen.source];
  const bool again = !letters.empty();
  letters.insert(doer);
  const std::string& id = history_.sent[by_source_.find(seen.source)->second].id;
  passed_ids_.insert(id);
  buried_.insert({{seen.worker, seen.life}, id});
  const bool ever = promise_ == Promise::kOncePerSource;
  if (ever && again) return Complain("doubled", "{} is there twice", seen.source);
  const auto effects = effects_.find(seen.source);
  if (effects != effects_.end() && (ever || effects->second.contains(doer))) {
    return Complain("both", "{} is a dead letter and took effect too", seen.source);
  }
  return std::nullopt;
}

void HistoryChecker::OnEffectLost(const Seen& seen) {
  --effects_by_id_[seen.id];
  effects_[seen.source].clear();
  rows_[history_.sent[by_source_.find(seen.source)->second].row].erase(seen.source);
  lost_[seen.id] = false;
  ever_lost_.insert(seen.id);
}

std::optional<Complaint> HistoryChecker::OnPruned(const Seen& seen) {
  --effects_by_id_[seen.id];
  pruned_[seen.id].insert(seen.source);
  const Sent& sent = history_.sent[by_source_.find(seen.source)->second];
  if (sent.offset < farthest_[sent.partition]) return std::nullopt;
  return Complain("forgotten", "{} at {}, which the group has not passed", seen.id, seen.source);
}

bool HistoryChecker::MayComeAgain(const Seen& seen) const {
  const auto pruned = pruned_.find(seen.id);
  return pruned == pruned_.end() || !pruned->second.contains(seen.source) ||
         sent_back_.contains(seen.source);
}

void HistoryChecker::OnGoneBack(const Seen& seen) {
  offsets_[seen.partition] = seen.next;
  for (const Sent& sent : history_.sent) {
    const bool again = sent.partition == seen.partition && sent.offset >= seen.next;
    if (again) sent_back_.insert(sent.source);
  }
  if (seen.kind == Seen::Kind::kOffsetSet) in_doubt_.erase(seen.partition);
  GiveUp(seen);
}

// The group goes on behind what is gone.
void HistoryChecker::GiveUp(const Seen& seen) {
  offsets_[seen.partition] = seen.next;
  std::int64_t& farthest = farthest_[seen.partition];
  farthest = std::max(farthest, seen.next);
  for (const Sent& sent : history_.sent) {
    const bool passed = sent.partition == seen.partition && sent.offset < seen.next;
    if (!passed || !gone_.contains(sent.source)) continue;
    given_up_.insert(sent.source);
    passed_ids_.insert(sent.id);
  }
}

void HistoryChecker::OnGone(const Seen& seen) {
  gone_.insert(seen.source);
  changed_.insert(seen.partition);
}

void HistoryChecker::OnAnotherLog(const Seen& seen) {
  ++log_[seen.partition];
  changed_.insert(seen.partition);
  in_doubt_.insert(seen.partition);
  unseen_[seen.partition] = seen.next;
}

// What was taken for done in the former log comes behind what took effect already.
void HistoryChecker::OnForgotten(const Seen& seen) {
  for (const Sent& sent : history_.sent) {
    if (sent.partition != seen.partition) continue;
    last_of_chain_.erase(sent.chain);
    if (!effects_.contains(sent.source)) continue;
    effects_by_id_[sent.id] = 0;
    pruned_[sent.id].insert(sent.source);
    sent_back_.insert(sent.source);
  }
}

std::optional<Complaint> HistoryChecker::OnToldOfLog(const Seen& seen) {
  unseen_.erase(seen.partition);
  if (changed_.contains(seen.partition)) return std::nullopt;
  return Complain("alarm", "worker {} ends, but the log of partition {} is what it was",
                  seen.worker, seen.partition);
}

// Of what it was never told it may still find out.
std::optional<Complaint> HistoryChecker::OnUsed(const Seen& seen) const {
  const Life life{seen.worker, seen.life};
  for (const auto& [id, told] : lost_) {
    if (!acknowledged_.contains({life, id}) || buried_.contains({life, id})) continue;
    return Complain("silent", "{} is lost, and worker {} goes on without a word", id, seen.worker);
  }
  return std::nullopt;
}

bool HistoryChecker::Complete(const Sent& sent) const {
  if (letters_.contains(sent.source) || no_output_.contains(sent.source)) return true;
  if (sent.makes_no_row && no_output_ids_.contains(sent.id)) return true;
  if (pruned_.contains(sent.id) || given_up_.contains(sent.source)) return true;
  if (replaced_.contains(sent.source)) return true;
  const auto effects = effects_by_id_.find(sent.id);
  return !sent.id.empty() && effects != effects_by_id_.end() && effects->second > 0;
}

std::optional<Complaint> HistoryChecker::OnStopped(const Seen& seen) {
  const Life life{seen.worker, seen.life};
  const auto knew = [&](const std::string& id) { return acknowledged_.contains({life, id}); };
  for (auto& [id, told] : lost_) {
    const auto known = acknowledged_.find({life, id});
    if (known == acknowledged_.end()) continue;
    told = told || !told_within_ || seen.at - known->second <= *told_within_;
  }
  if (std::ranges::any_of(ever_lost_, knew)) return std::nullopt;
  return Complain("alarm", "worker {} ends, but nothing that it knew of was lost", life.first);
}

// A worker that has ended before, or that has not used the output since, tells nothing.
bool HistoryChecker::MayBeLost(const Sent& sent) const {
  const auto unseen = unseen_.find(sent.partition);
  if (unseen != unseen_.end() && sent.log > 0 && sent.offset < unseen->second) return true;
  const auto lost = lost_.find(sent.id);
  if (lost == lost_.end()) return false;
  // What was to be done again may have become a dead letter this time, or be gone.
  return !lost->second || passed_ids_.contains(sent.id);
}

std::optional<Complaint> HistoryChecker::OnOffset(const Seen& seen) {
  std::int64_t& committed = offsets_[seen.partition];
  if (seen.next < committed) {
    return Complain("early", "partition {}: the offset went back from {} to {}", seen.partition,
                    committed, seen.next);
  }
  const std::int64_t from = std::exchange(committed, seen.next);
  farthest_[seen.partition] = std::max(farthest_[seen.partition], seen.next);
  if (in_doubt_.contains(seen.partition)) return std::nullopt;
  for (const Sent& sent : history_.sent) {
    const bool passed =
        sent.partition == seen.partition && sent.offset >= from && sent.offset < seen.next;
    if (sent.log > log_[sent.partition]) continue;  // not there yet
    if (!passed || Complete(sent) || lost_.contains(sent.id)) continue;
    return Complain("early", "partition {}: {} was committed, past {} at {}, which is not complete",
                    seen.partition, seen.next, sent.id, sent.source);
  }
  return std::nullopt;
}

std::optional<Complaint> HistoryChecker::AtTheEnd() const {
  for (const Sent& sent : history_.sent) {
    if (!Complete(sent) && !MayBeLost(sent))
      return Complain("lost", "{} at {} is lost", sent.id, sent.source);
  }
  return std::nullopt;
}

}  // namespace fencepost::simulator
