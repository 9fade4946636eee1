// What happened to a record, and what will happen next: a judgement on the facts. The order of the
// questions is the order of what counts: the ledger, then the dead letter topic, then the record
// itself, then the lock, and the group's offset at the end.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "consumer/cli/explain/explain_words.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/moments.h"
#include "consumer/record/dead_letter.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

using consumer::Finality;
using consumer::LedgerEntry;
using consumer::OnBad;
using locking::Millis;

class Judgement {
 public:
  explicit Judgement(const Facts& facts) : facts_(facts) {
    std::map<locking::Token, int> holders;
    for (const NodeFacts& node : facts.nodes) {
      if (node.state == NodeState::kUnreachable) continue;
      ++reached_;
      done_ += node.state == NodeState::kDone && facts.finality != Finality::kLedger ? 1 : 0;
      if (node.state != NodeState::kHeld) continue;
      if (node.rest > Millis(0)) {
        held_ = std::max(held_, ++holders[node.token]);
      } else {
        ++expired_;
      }
    }
  }

  [[nodiscard]] Verdict Say() const;

 private:
  [[nodiscard]] Verdict ByRow(const LedgerEntry& row) const;
  [[nodiscard]] Verdict ByLetter(const LetterFacts& letter) const;
  [[nodiscard]] Verdict NoSuchRecord() const;
  [[nodiscard]] Verdict WithoutId() const;
  [[nodiscard]] Verdict WithoutRow() const;
  [[nodiscard]] std::string WhatABadRecordDoes() const;
  [[nodiscard]] Verdict ByMark() const;
  [[nodiscard]] std::optional<Verdict> ByLock() const;
  [[nodiscard]] Verdict PassedBy() const;
  [[nodiscard]] Verdict Waiting() const;
  [[nodiscard]] Verdict Unknown() const;

  [[nodiscard]] bool Past() const {
    return CommittedKnown() && **facts_.committed && facts_.position->offset < ***facts_.committed;
  }
  [[nodiscard]] bool CommittedKnown() const {
    return facts_.position && facts_.committed && *facts_.committed;
  }
  [[nodiscard]] bool NotThere() const {
    return facts_.record && *facts_.record && !**facts_.record;
  }
  [[nodiscard]] bool RowUnknown() const {
    return facts_.finality == Finality::kLedger && (!facts_.row || !*facts_.row);
  }
  [[nodiscard]] const LedgerEntry* Row() const {
    return facts_.row && *facts_.row && **facts_.row ? &***facts_.row : nullptr;
  }
  [[nodiscard]] const LetterFacts* Letter() const;
  // When the newest token in this state was drawn.
  [[nodiscard]] std::string Drawn(NodeState state) const {
    locking::Token newest;
    for (const NodeFacts& node : facts_.nodes) {
      if (node.state == state) newest = std::max(newest, node.token);
    }
    return MomentText(newest.wall());
  }
  [[nodiscard]] Millis LongestRest(NodeState state) const {
    Millis rest{0};
    for (const NodeFacts& node : facts_.nodes) {
      if (node.state == state) rest = std::max(rest, node.rest);
    }
    return rest;
  }
  [[nodiscard]] std::string Nodes(int count) const {
    return fmt::format("{} of {} lock nodes", count, facts_.nodes.size());
  }
  [[nodiscard]] std::string ConflictRule() const;
  [[nodiscard]] std::string HowLongKept() const {
    if (facts_.position_ids) return "its partition's ledger row is there, which does not grow";
    if (!facts_.ledger_keep) return "its ledger row is kept for ever (no ledger.keep)";
    return "its ledger row is kept for " + SpanText(*facts_.ledger_keep) + " (ledger.keep)";
  }
  // Where the record itself was done or skipped, and the offset is not past it.
  [[nodiscard]] std::string OffsetFollows() const {
    if (!CommittedKnown()) return "";
    return "The group's offset passes it once everything before it in the partition is finished; "
           "if a worker reads it again before that, it finds this and skips it.";
  }

  const Facts& facts_;
  int reached_ = 0;
  int done_ = 0;  // where there is a ledger, a mark says nothing
  int held_ = 0;  // the most nodes that hold one token
  int expired_ = 0;
};

const LetterFacts* Judgement::Letter() const {
  if (!facts_.letters || !*facts_.letters) return nullptr;
  const auto& letters = **facts_.letters;
  const auto found = std::find_if(letters.rbegin(), letters.rend(), [&](const LetterFacts& l) {
    return !facts_.position || l.origin == *facts_.position;
  });
  return found == letters.rend() ? nullptr : &*found;
}

std::string Judgement::ConflictRule() const {
  const OnBad rule = facts_.on_id_conflict;
  return fmt::format("on_id_conflict: {}", rule == OnBad::kDeadLetter ? "dead_letter"
                                           : rule == OnBad::kSkip     ? "skip"
                                                                      : "stop");
}

Verdict Judgement::Say() const {
  if (facts_.position && facts_.range && *facts_.range &&
      facts_.position->offset >= (*facts_.range)->end) {
    return {"beyond_end",
            fmt::format("There is no such record yet: the partition's next offset is {}.",
                        (*facts_.range)->end),
            "It will be read when it is written (and committed, if its producer is "
            "transactional)."};
  }
  if (Row() != nullptr) return ByRow(*Row());
  if (const LetterFacts* letter = Letter()) return ByLetter(*letter);
  if (NotThere()) return NoSuchRecord();
  if (!facts_.no_id.empty()) return WithoutId();
  if (facts_.id.empty()) return Unknown();
  if (done_ > 0) return ByMark();
  if (Past()) return RowUnknown() ? Unknown() : PassedBy();
  if (!facts_.no_row.empty()) return WithoutRow();
  if (auto verdict = ByLock()) return std::move(*verdict);
  if (RowUnknown() || reached_ == 0 || !CommittedKnown()) return Unknown();
  return Waiting();
}

Verdict Judgement::ByRow(const LedgerEntry& row) const {
  const bool own = facts_.position && row.source == facts_.position->Text();
  if (facts_.crc && row.crc && locking::IsOtherContent(*facts_.crc, *row.crc)) {
    Verdict verdict{.code = "id_conflict"};
    verdict.happened = fmt::format(
        "The same id is in the ledger with other content (from {}, completed {}): an id conflict. "
        "This record has no effect.{}",
        Printable(row.source), row.completed_at,
        facts_.position_ids || own ? " Was the topic recreated?" : "");
    if (Letter() != nullptr) {
      verdict.next =
          "Nothing unless you act: it is in the dead letter topic. fencepost dlq replay "
          "--as-new-id sends it back all the same.";
    } else if (Past()) {
      verdict.next =
          fmt::format("Nothing unless you act: the offset is past it ({}).", ConflictRule());
    } else if (facts_.position_ids || facts_.on_id_conflict == OnBad::kStop) {
      verdict.next = "The worker that reads it stops, with this explanation.";
    } else {
      verdict.next = fmt::format("When a worker reads it, it does what {} says.", ConflictRule());
    }
    return verdict;
  }
  if (own || facts_.position_from == PositionFrom::kLedgerRow) {
    return {"done",
            row.crc
                ? fmt::format("Done: its effect was committed at {} by worker {}.",
                              row.completed_at, Printable(row.worker))
                : fmt::format("Done: its effect was committed at {} or before.", row.completed_at),
            Past() || !CommittedKnown()
                ? fmt::format("Nothing. Another record with this id is skipped while {}.",
                              HowLongKept())
                : OffsetFollows()};
  }
  const std::string before = Letter() == nullptr
                                 ? ""
                                 : " It was a dead letter before; this is its replay, or another "
                                   "record with this id.";
  return {
      "duplicate",
      fmt::format("Another record with the same id{} took effect: {}, committed at {} by worker "
                  "{}.{}",
                  facts_.crc && row.crc ? " and the same content" : "", Printable(row.source),
                  row.completed_at, Printable(row.worker), before),
      Past() ? "Nothing: it was skipped." : "The worker that reads it finds the row and skips it."};
}

Verdict Judgement::ByLetter(const LetterFacts& letter) const {
  Verdict verdict{.code = "dead_lettered"};
  verdict.happened = fmt::format("It failed ({}: {}) and was published to {} at {}.",
                                 Printable(letter.error_class), Printable(letter.error),
                                 letter.at.Text(), Printable(letter.failed_at));
  if (facts_.position && CommittedKnown() && !Past()) {
    verdict.next =
        "The offset is not past it: the worker may have ended between the publish and "
        "the commit. The next worker that reads it processes it again, so there may be a dead "
        "letter and an effect.";
  } else {
    verdict.next = fmt::format(
        "Nothing unless you act. fencepost dlq replay FILE --topic {} --partition {} --offset {} "
        "tells "
        "whether it can be sent back, and does it with --execute.",
        letter.origin.where.topic, letter.origin.where.partition, letter.origin.offset);
  }
  return verdict;
}

Verdict Judgement::NoSuchRecord() const {
  const auto& range = *facts_.range;
  const bool gone = range && facts_.position->offset < range->first;
  const std::string trace = done_ > 0 ? " The lock nodes remember its id as DONE." : "";
  if (gone) {
    return {"gone",
            fmt::format("It is not there any more: the oldest offset that Kafka keeps is {} "
                        "(retention).{}",
                        range->first, trace),
            Past() || !CommittedKnown()
                ? "Nothing: nobody can read it again."
                : "The group had not passed it: a worker stops with an explanation when it finds "
                  "its offset out of range."};
  }
  return {"hole",
          "No record can be read there: the offset belongs to a transaction's marker, to an "
          "aborted record, or to one that compaction removed." +
              trace,
          "Nothing: the offset passes it."};
}

Verdict Judgement::WithoutId() const {
  const bool letters = facts_.on_bad_record == OnBad::kDeadLetter;
  Verdict verdict{.code = "bad_record"};
  verdict.happened = fmt::format("It has no record id: {}.", Printable(facts_.no_id));
  if (Past()) {
    verdict.happened += " The group's offset is past it.";
    verdict.next = letters ? "Nothing: its dead letter is not in the topic any more, or the group "
                             "began after it."
                           : "Nothing: the group began after it, or was moved past it.";
  } else {
    verdict.next = WhatABadRecordDoes();
  }
  return verdict;
}

Verdict Judgement::WithoutRow() const {
  return {"bad_record",
          fmt::format("The output's columns refuse it: {}.", Printable(facts_.no_row)),
          WhatABadRecordDoes()};
}

std::string Judgement::WhatABadRecordDoes() const {
  if (facts_.on_bad_record == OnBad::kDeadLetter) {
    return "The worker that reads it sends it to the dead letter topic (on_bad_record: "
           "dead_letter).";
  }
  return fmt::format(
      "The worker that reads it ends with exit code 1, and so does each that is started after it "
      "(on_bad_record: stop): {}.",
      consumer::kBadRecordHint);
}

Verdict Judgement::ByMark() const {
  const NodeFacts& mark =
      *std::find_if(facts_.nodes.begin(), facts_.nodes.end(),
                    [](const NodeFacts& node) { return node.state == NodeState::kDone; });
  const std::string rest = SpanText(LongestRest(NodeState::kDone));
  if (facts_.crc && locking::IsOtherContent(mark.crc, *facts_.crc)) {
    return {"id_conflict",
            fmt::format("Another record with the same id and other content is DONE (on {}, under "
                        "the token drawn {}): an id conflict.",
                        Nodes(done_), Drawn(NodeState::kDone)),
            Past()
                ? fmt::format("Nothing unless you act: the offset is past it ({}).", ConflictRule())
                : fmt::format("The worker that reads it does what {} says, while the mark is "
                              "remembered (another {}).",
                              ConflictRule(), rest)};
  }
  return {"done",
          fmt::format("Done: this record, or another one with its id, is marked DONE on {}, under "
                      "the token drawn {}.",
                      Nodes(done_), Drawn(NodeState::kDone)),
          Past() ? fmt::format("Nothing. Another record with this id is skipped for another {}; "
                               "after that it would be processed.",
                               rest)
                 : OffsetFollows()};
}

std::optional<Verdict> Judgement::ByLock() const {
  const int quorum = locking::Quorum(static_cast<int>(facts_.nodes.size()));
  if (held_ >= quorum) {
    return Verdict{
        "in_progress",
        fmt::format("A worker holds its lock on {}, under the token drawn {}: this record, or "
                    "another one {}, is being processed.",
                    Nodes(held_), Drawn(NodeState::kHeld),
                    facts_.block > 1 ? "of its block of offsets" : "with its id"),
        fmt::format("The worker extends the lease until it is done; if it dies, another one takes "
                    "over within {}.",
                    SpanText(LongestRest(NodeState::kHeld)))};
  }
  if (held_ > 0) {
    return Verdict{
        "locking",
        fmt::format("{} hold a lock on it, which is no majority ({} are needed): a worker is just "
                    "taking it, or gave up, or the other nodes are away.",
                    Nodes(held_), quorum),
        fmt::format(
            "It is asked for again until a majority grants it; what the nodes hold now ends within "
            "{}.",
            SpanText(LongestRest(NodeState::kHeld)))};
  }
  if (expired_ > 0) {
    return Verdict{"takeover",
                   fmt::format("A lock of it is on {}, past its deadline (token drawn {}): its "
                               "holder died, or froze, before it was done.",
                               Nodes(expired_), Drawn(NodeState::kHeld)),
                   "The next worker that reads it takes the lock over and processes it; if the old "
                   "holder comes back, the fence refuses its write."};
  }
  return std::nullopt;
}

Verdict Judgement::PassedBy() const {
  const std::string again =
      "Nothing. To have it processed, stop the workers, move the group's offset back to it, and "
      "start them.";
  if (facts_.finality == Finality::kTransaction) {
    return {"done",
            "The group's offset is past it, and moves only in the Kafka transaction that holds the "
            "output: it was done, or skipped, unless the group began after it or was moved.",
            again};
  }
  if (facts_.finality == Finality::kWrite) {
    return {"done",
            fmt::format("The group's offset is past it, and moves only after the write: it was "
                        "done, or skipped, unless the group began after it or was moved. The lock "
                        "nodes have no mark of it (lock.remember_done: {}).",
                        SpanText(facts_.remember_done)),
            again};
  }
  std::string why = facts_.ledger_keep ? fmt::format("its row was pruned (ledger.keep: {}), ",
                                                     SpanText(*facts_.ledger_keep))
                                       : "";
  return {"passed_without_trace",
          fmt::format("The group's offset is past it, and there is no trace of it: {}the group "
                      "began after it, its offset was moved by hand, the row was forgotten or lost "
                      "with the database (failed over, restored), or its dead letter is gone.",
                      why),
          again};
}

Verdict Judgement::Waiting() const {
  Verdict verdict{.code = "waiting"};
  if (!**facts_.committed) {
    verdict.happened = "Nothing yet: the group has committed nothing of this partition.";
    verdict.next =
        facts_.start_from == consumer::StartFrom::kEarliest
            ? "A worker reads it after everything before it in the partition (start_from: "
              "earliest)."
            : "The first worker of a new group begins at the end of the topic (start_from: "
              "latest): then this record is not read.";
    return verdict;
  }
  const consumer::Offset before = facts_.position->offset - ***facts_.committed;
  verdict.happened = "Nothing yet: it is not committed, and no worker holds its lock.";
  verdict.next =
      before == 0
          ? "It is the next one of its partition: a worker takes it up at once. If it stays like "
            "this, no worker has the partition, or this record holds it back: see /status and "
            "the workers' log." +
                (facts_.on_bad_record == OnBad::kStop
                     ? fmt::format(" If workers end at it with exit code 1 (the event bad_record "
                                   "says why; on_bad_record: stop): {}.",
                                   consumer::kBadRecordHint)
                     : "")
          : fmt::format("A worker gets to it: the group's committed offset is {} before it.",
                        before);
  return verdict;
}

// A part that would decide was not reached, or an id is all that there is.
Verdict Judgement::Unknown() const {
  Verdict verdict{.code = "unknown"};
  const auto add = [&](const std::string& sentence) {
    verdict.happened += (verdict.happened.empty() ? "" : " ") + sentence;
  };
  if (facts_.id.empty()) add("The record could not be read, so its id is not known.");
  if (done_ > 0) {
    add(fmt::format("{} say DONE, so it was most likely done.", Nodes(done_)));
  } else if (Past()) {
    add("The group's offset is past it, so it was most likely done, skipped or dead-lettered.");
  }
  if (!facts_.id.empty()) {
    if (RowUnknown()) add("The ledger could not be asked, and it decides.");
    if (reached_ == 0) add("No lock node could be asked whether a worker holds it.");
    if (facts_.position && !CommittedKnown()) add("Kafka could not be asked how far the group is.");
  }
  verdict.next = "Ask again when every part can be reached.";
  if (verdict.happened.empty()) {
    verdict.code = "waiting";
    add("No part knows this id: no ledger row, no mark, no lock, no dead letter.");
    verdict.next =
        "If there is such a record, it is still to be processed, or its traces are gone: give "
        "TOPIC PARTITION OFFSET to learn more.";
  }
  return verdict;
}

}  // namespace

Verdict Judge(const Facts& facts) { return Judgement(facts).Say(); }

}  // namespace fencepost::cli
