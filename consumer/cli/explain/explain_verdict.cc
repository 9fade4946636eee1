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
using consumer::OnBad;
using locking::Millis;

class Judgement {
 public:
  explicit Judgement(const Facts& facts)
      : facts_(facts),
        options_(facts.options),
        finality_(FinalityOf(options_.output)),
        by_position_(options_.identity.ByPosition()),
        row_(Found(facts.row)),
        letter_(Letter(facts)),
        group_known_(facts.position && Known(facts.committed) != nullptr),
        committed_(facts.position ? Found(facts.committed) : nullptr),
        past_(committed_ != nullptr && facts.position->offset < *committed_) {
    std::map<locking::Token, int> holders;
    for (const NodeFacts& node : facts.nodes) {
      if (node.state == NodeState::kUnreachable) continue;
      ++reached_;
      done_ += node.state == NodeState::kDone && finality_ != Finality::kLedger ? 1 : 0;
      if (node.state != NodeState::kHeld) continue;
      if (node.rest > Millis(0)) {
        held_ = std::max(held_, ++holders[node.token]);
      } else {
        ++expired_;
      }
    }
  }

  [[nodiscard]] Verdict Say() const {
    const auto* range = Known(facts_.range);
    if (range != nullptr && facts_.position->offset >= range->end) {
      return {"beyond_end",
              fmt::format("There is no such record yet: the partition's next offset is {}.",
                          range->end),
              "It will be read when it is written (and committed, if its producer is "
              "transactional)."};
    }
    if (IsDeadLetter()) return letter_ != nullptr ? ByLetter() : LetterIsGone();
    if (row_ != nullptr && MadeNoRow()) return NoOutput();
    if (row_ != nullptr && !GivesWay()) return IsOther(row_->crc) ? Conflict() : ByRow();
    if (letter_ != nullptr) return ByLetter();
    if (Known(facts_.record) != nullptr && Found(facts_.record) == nullptr) return NoSuchRecord();
    if (!facts_.no_id.empty()) return WithoutId();
    if (facts_.id.empty()) return Unknown();
    if (done_ > 0) return ByMark();
    if (past_) return RowUnknown() ? Unknown() : PassedBy();
    if (!facts_.no_row.empty()) {
      return {"bad_record",
              fmt::format("The output's columns refuse it: {}.", Printable(facts_.no_row)),
              WhatABadRecordDoes()};
    }
    if (held_ + expired_ > 0) return WithFailures(ByLock());
    if (RowUnknown() || reached_ == 0 || !group_known_) return Unknown();
    return WithFailures(Waiting());
  }

 private:
  static const StoredLetter* Letter(const Facts& facts) {
    const auto* letters = Known(facts.letters);
    if (letters == nullptr) return nullptr;
    const auto found = std::find_if(letters->rbegin(), letters->rend(), [&](const auto& letter) {
      return !facts.position || letter.origin == *facts.position;
    });
    return found == letters->rend() ? nullptr : &*found;
  }
  [[nodiscard]] bool RowUnknown() const {
    return finality_ == Finality::kLedger && Known(facts_.row) == nullptr;
  }
  [[nodiscard]] bool IsOther(const std::optional<locking::ContentCrc>& content) const {
    return facts_.crc && content && locking::IsOtherContent(*facts_.crc, *content);
  }
  // By position, as the ledger says, and it was not replayed since.
  [[nodiscard]] bool IsDeadLetter() const {
    return by_position_ && row_ != nullptr && row_->token == locking::Token();
  }
  // The row says that nothing was written for a record of other content.
  [[nodiscard]] bool GivesWay() const {
    return row_->token == locking::Token() && facts_.crc && row_->crc && *facts_.crc != *row_->crc;
  }
  // It was done without a row of the table: so says its ledger row; or another content has the id,
  // which would have been a conflict, and the offset is past it.
  [[nodiscard]] bool MadeNoRow() const {
    if (row_->token == locking::Token() && !GivesWay()) return true;
    const bool conflict = letter_ != nullptr || options_.on_id_conflict == OnBad::kSkip;
    return (IsOther(row_->crc) ? options_.handler.any() : GivesWay()) && past_ && !IsOwnRow() &&
           !conflict;
  }
  // When the newest token in this state was drawn.
  [[nodiscard]] std::string Drawn(NodeState state) const {
    locking::Token newest;
    for (const NodeFacts& node : facts_.nodes) {
      if (node.state == state) newest = std::max(newest, node.token);
    }
    return MomentText(newest.wall());
  }
  [[nodiscard]] std::string LongestRest(NodeState state) const {
    Millis rest{0};
    for (const NodeFacts& node : facts_.nodes) {
      if (node.state == state) rest = std::max(rest, node.rest);
    }
    return SpanText(rest);
  }
  [[nodiscard]] std::string Nodes(int count) const {
    return fmt::format("{} of {} lock nodes", count, facts_.nodes.size());
  }
  [[nodiscard]] std::string ConflictRule() const {
    const OnBad rule = options_.on_id_conflict;
    return fmt::format("on_id_conflict: {}", rule == OnBad::kDeadLetter ? "dead_letter"
                                             : rule == OnBad::kSkip     ? "skip"
                                                                        : "stop");
  }
  [[nodiscard]] std::string PastIt() const {
    return fmt::format("Nothing unless you act: the offset is past it ({}).", ConflictRule());
  }
  [[nodiscard]] std::string HowLongKept() const {
    if (by_position_) return "its partition's ledger row is there, which does not grow";
    if (!options_.ledger_keep) return "its ledger row is kept for ever (no ledger.keep)";
    return "its ledger row is kept for " + SpanText(*options_.ledger_keep) + " (ledger.keep)";
  }
  // Where the record itself was done or skipped, and the offset is not past it.
  [[nodiscard]] std::string OffsetFollows() const {
    if (!group_known_) return "";
    return "The group's offset passes it once everything before it in the partition is finished; "
           "if a worker reads it again before that, it finds this and skips it.";
  }
  [[nodiscard]] bool IsOwnRow() const {
    return facts_.position && row_->source == facts_.position->Text();
  }

  [[nodiscard]] Verdict Conflict() const {
    Verdict verdict{.code = "id_conflict"};
    verdict.happened = fmt::format(
        "The same id is in the ledger with other content (from {}, completed {}): an id conflict. "
        "This record has no effect.{}",
        Printable(row_->source), row_->completed_at,
        by_position_ || IsOwnRow() ? " Was the topic recreated?" : "");
    if (letter_ != nullptr) {
      verdict.next =
          "Nothing unless you act: it is in the dead letter topic. fencepost dlq replay "
          "--as-new-id sends it back all the same.";
    } else if (past_) {
      verdict.next = PastIt();
    } else if (by_position_ || options_.on_id_conflict == OnBad::kStop) {
      verdict.next = "The worker that reads it stops, with this explanation.";
    } else {
      verdict.next = fmt::format("When a worker reads it, it does what {} says.", ConflictRule());
    }
    return verdict;
  }

  [[nodiscard]] Verdict NoOutput() const {
    const std::string how = options_.handler.any() ? "the handler returned no row"
                                                   : "no row is made of it (on_null_value: skip)";
    if (IsOther(row_->crc) || GivesWay()) {
      return {"no_output",
              fmt::format("Done: {}. The ledger's row of its id is of another record ({}).", how,
                          Printable(row_->source)),
              "Nothing."};
    }
    return {"no_output",
            fmt::format("Done: {}, so nothing was written for it (at {} by worker {}).", how,
                        row_->completed_at, Printable(row_->worker)),
            "Nothing. Another record with this id and the same content is skipped; one of other "
            "content is processed."};
  }

  [[nodiscard]] Verdict ByRow() const {
    const std::string at = row_->completed_at;
    const std::string worker = Printable(row_->worker);
    if (IsOwnRow() || facts_.position_from == PositionFrom::kLedgerRow) {
      return {
          "done",
          fmt::format("Done: its effect was committed at {}{}.{}", at,
                      row_->crc                ? " by worker " + worker
                      : options_.handler.any() ? " or before, unless the handler returned no row"
                                               : " or before",
                      facts_.newer_row ? " Its row has a newer change now, by fence_by: that "
                                         "one replaced it; or a newer change had been written "
                                         "before, and this one had no effect."
                                       : ""),
          past_ || !group_known_
              ? fmt::format("Nothing. Another record with this id is skipped while {}.",
                            HowLongKept())
              : OffsetFollows()};
    }
    return {"duplicate",
            fmt::format("Another record with the same id{} took effect: {}, committed at {} by "
                        "worker {}.{}",
                        facts_.crc && row_->crc ? " and the same content" : "",
                        Printable(row_->source), at, worker,
                        letter_ == nullptr ? ""
                                           : " It was a dead letter before; this is its replay, or "
                                             "another record with this id."),
            past_ ? "Nothing: it was skipped."
                  : "The worker that reads it finds the row and skips it."};
  }

  [[nodiscard]] Verdict ByLetter() const {
    Verdict verdict{.code = "dead_lettered"};
    verdict.happened = fmt::format("It failed ({}: {}) and was published to {} at {}.",
                                   Printable(letter_->error_class), Printable(letter_->error),
                                   letter_->at().Text(), Printable(letter_->failed_at));
    if (group_known_ && !past_ && !IsDeadLetter()) {
      verdict.next =
          "The offset is not past it: the worker may have ended between the publish and "
          "the commit. The next worker that reads it processes it again, so there may be a dead "
          "letter and an effect.";
    } else {
      verdict.next = fmt::format(
          "Nothing unless you act. fencepost dlq replay FILE --topic {} --partition {} --offset {} "
          "tells whether it can be sent back, and does it with --execute.",
          letter_->origin.where.topic, letter_->origin.where.partition, letter_->origin.offset);
    }
    return verdict;
  }

  [[nodiscard]] Verdict LetterIsGone() const {
    return {"dead_lettered",
            fmt::format("It became a dead letter at {}: nothing was written for it. The letter is "
                        "not in the topic any more.",
                        row_->completed_at),
            "Nothing. fencepost forget takes it back, so that it is processed again."};
  }

  [[nodiscard]] Verdict NoSuchRecord() const {
    const auto* range = Known(facts_.range);
    const std::string trace = done_ > 0 ? " The lock nodes remember its id as DONE." : "";
    if (range != nullptr && facts_.position->offset < range->first) {
      return {"gone",
              fmt::format("It is not there any more: the oldest offset that Kafka keeps is {} "
                          "(retention).{}",
                          range->first, trace),
              past_ || !group_known_
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

  [[nodiscard]] Verdict WithoutId() const {
    const std::string happened = fmt::format("It has no record id: {}.", Printable(facts_.no_id));
    if (!past_) return {"bad_record", happened, WhatABadRecordDoes()};
    return {"bad_record", happened + " The group's offset is past it.",
            options_.on_bad_record == OnBad::kDeadLetter
                ? "Nothing: its dead letter is not in the topic any more, or the group began after "
                  "it."
                : "Nothing: the group began after it, or was moved past it."};
  }

  [[nodiscard]] std::string WhatABadRecordDoes() const {
    if (options_.on_bad_record == OnBad::kDeadLetter) {
      return "The worker that reads it sends it to the dead letter topic (on_bad_record: "
             "dead_letter).";
    }
    return fmt::format(
        "The worker that reads it ends with exit code 1, and so does each that is started after it "
        "(on_bad_record: stop): {}.",
        consumer::kBadRecordHint);
  }

  [[nodiscard]] Verdict ByMark() const {
    const auto mark = std::ranges::find(facts_.nodes, NodeState::kDone, &NodeFacts::state);
    const std::string rest = LongestRest(NodeState::kDone);
    const std::string drawn = Drawn(NodeState::kDone);
    const bool elsewhere =
        facts_.cluster && consumer::IsOfAnotherCluster(mark->crc, *facts_.cluster);
    if (facts_.crc && consumer::MarkIsOfOtherContent(mark->crc, *facts_.crc)) {
      return {"id_conflict",
              fmt::format("Another record with the same id and other content is DONE (on {}, under "
                          "the token drawn {}): an id conflict.",
                          Nodes(done_), drawn),
              past_ ? PastIt()
                    : fmt::format("The worker that reads it does what {} says, while the mark is "
                                  "remembered (another {}).",
                                  ConflictRule(), rest)};
    }
    return {
        "done",
        fmt::format("Done: this record, or another one with its id{}, is marked DONE on {}, "
                    "under the token drawn {}.",
                    elsewhere ? " in another Kafka cluster" : "", Nodes(done_), drawn),
        past_ || !group_known_
            ? fmt::format(
                  "Nothing. Another record with this id is skipped for another {}, then processed.",
                  rest)
            : OffsetFollows()};
  }

  [[nodiscard]] Verdict ByLock() const {
    const int quorum = locking::Quorum(static_cast<int>(facts_.nodes.size()));
    const std::string rest = LongestRest(NodeState::kHeld);
    const std::string drawn = Drawn(NodeState::kHeld);
    if (held_ >= quorum) {
      return {"in_progress",
              fmt::format("A worker holds its lock on {}, under the token drawn {}: this record, "
                          "or another one {}, is being processed.",
                          Nodes(held_), drawn,
                          LockBlock(options_) > 1 ? "of its block of offsets" : "with its id"),
              fmt::format("The worker extends the lease until it is done; if it dies, another one "
                          "takes over within {}.",
                          rest)};
    }
    if (held_ > 0) {
      return {"locking",
              fmt::format("{} hold a lock on it, which is no majority ({} are needed): a worker is "
                          "just taking it, or gave up, or the other nodes are away.",
                          Nodes(held_), quorum),
              fmt::format("It is asked for again until a majority grants it; what the nodes hold "
                          "now ends within {}.",
                          rest)};
    }
    return {"takeover",
            fmt::format("A lock of it is on {}, past its deadline (token drawn {}): its holder "
                        "died, or froze, before it was done.",
                        Nodes(expired_), drawn),
            "The next worker that reads it takes the lock over and processes it; if the old holder "
            "comes back, the fence refuses its write."};
  }

  [[nodiscard]] Verdict PassedBy() const {
    const std::string again =
        "Nothing. To have it processed, stop the workers, move the group's offset back to it, and "
        "start them.";
    const auto done = [&](const char* when, const std::string& marks) -> Verdict {
      return {"done",
              fmt::format("The group's offset is past it, and moves only {}: it was done, or "
                          "skipped, unless the group began after it or was moved.{}",
                          when, marks),
              again};
    };
    if (finality_ == Finality::kTransaction) {
      return done("in the Kafka transaction that holds the output", "");
    }
    if (finality_ == Finality::kWrite) {
      return done("after the write",
                  fmt::format(" The lock nodes have no mark of it (lock.remember_done: {}).",
                              SpanText(options_.lock.lock.remember_done)));
    }
    const std::string why =
        options_.ledger_keep
            ? fmt::format("its row was pruned (ledger.keep: {}), ", SpanText(*options_.ledger_keep))
            : "";
    return {"passed_without_trace",
            fmt::format("The group's offset is past it, and there is no trace of it: {}the group "
                        "began after it, its offset was moved by hand, the row was forgotten or "
                        "lost with the database (failed over, restored), or its dead letter is "
                        "gone.",
                        why),
            again};
  }

  [[nodiscard]] Verdict Waiting() const {
    if (committed_ == nullptr) {
      return {"waiting", "Nothing yet: the group has committed nothing of this partition.",
              options_.kafka.start_from == consumer::StartFrom::kEarliest
                  ? "A worker reads it after everything before it in the partition (start_from: "
                    "earliest)."
                  : "The first worker of a new group begins at the end of the topic (start_from: "
                    "latest): then this record is not read."};
    }
    Verdict verdict{"waiting", "Nothing yet: it is not committed, and no worker holds its lock.",
                    "It is the next one of its partition: a worker takes it up at once. If it "
                    "stays like this, no worker has the partition, or this record holds it back: "
                    "see /status and the workers' log."};
    if (const consumer::Offset before = facts_.position->offset - *committed_; before > 0) {
      verdict.next =
          fmt::format("A worker gets to it: the group's committed offset is {} before it.", before);
    } else if (options_.on_bad_record == OnBad::kStop) {
      verdict.next += fmt::format(
          " If workers end at it with exit code 1 (the event bad_record says why; on_bad_record: "
          "stop): {}.",
          consumer::kBadRecordHint);
    }
    return verdict;
  }

  [[nodiscard]] Verdict WithFailures(Verdict verdict) const {
    if (!facts_.failing) return verdict;
    const std::string last = MomentText(locking::WallTime(facts_.failing->last));
    verdict.happened += fmt::format(" Its handler has failed {} times, last at {} (see the log).",
                                    facts_.failing->attempts, last);
    return verdict;
  }

  // A part that would decide was not reached, or an id is all that there is.
  [[nodiscard]] Verdict Unknown() const {
    Verdict verdict{"unknown", "", "Ask again when every part can be reached."};
    const auto add = [&](bool holds, const std::string& sentence) {
      if (holds) verdict.happened += (verdict.happened.empty() ? "" : " ") + sentence;
    };
    const bool has_id = !facts_.id.empty();
    add(!has_id, "The record could not be read, so its id is not known.");
    add(done_ > 0, fmt::format("{} say DONE, so it was most likely done.", Nodes(done_)));
    add(done_ == 0 && past_,
        "The group's offset is past it, so it was most likely done, skipped or dead-lettered.");
    add(has_id && RowUnknown(), "The ledger could not be asked, and it decides.");
    add(has_id && reached_ == 0, "No lock node could be asked whether a worker holds it.");
    add(has_id && facts_.position && !group_known_,
        "Kafka could not be asked how far the group is.");
    if (!verdict.happened.empty()) return verdict;
    return {"waiting", "No part knows this id: no ledger row, no mark, no lock, no dead letter.",
            "If there is such a record, it is still to be processed, or its traces are gone: give "
            "TOPIC PARTITION OFFSET to learn more."};
  }

  const Facts& facts_;
  const consumer::PipelineOptions& options_;
  const Finality finality_;
  const bool by_position_;
  const consumer::LedgerEntry* const row_;
  const StoredLetter* const letter_;
  const bool group_known_;
  const consumer::Offset* const committed_;
  const bool past_;
  int reached_ = 0;
  int done_ = 0;  // where there is a ledger, a mark says nothing
  int held_ = 0;  // the most nodes that hold one token
  int expired_ = 0;
};

}  // namespace

Verdict Judge(const Facts& facts) { return Judgement(facts).Say(); }

}  // namespace fencepost::cli
