// What happened to a record, and what will happen next: a judgement on the facts. The order of the
// questions is the order of what counts: the ledger, then the dead letter topic, then the record
// itself, then DONE marks and the group's offset. What none of them knows: explain_unfinished.cc.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/cli/explain/explain_findings.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/moments.h"
#include "consumer/cli/shared/pipelines.h"
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
      : f_(facts), by_position_(f_.options.identity.ByPosition()) {}

  [[nodiscard]] Verdict Say() const {
    const auto* range = Known(f_.facts.range);
    if (range != nullptr && f_.facts.position->offset >= range->end) {
      return {"beyond_end",
              fmt::format("There is no such record yet: the partition's next offset is {}.",
                          range->end),
              "It will be read when it is written (and committed, if its producer is "
              "transactional)."};
    }
    if (IsDeadLetter() && IsReplay()) return ReplayFailed();
    if (IsDeadLetter()) return f_.letter != nullptr ? ByLetter() : LetterIsGone();
    if (!f_.facts.filtered.empty() && !IsOwnEffect() && f_.letter == nullptr) return Filtered();
    if (f_.row != nullptr && MadeNoRow()) return NoOutput();
    const bool other = f_.row != nullptr && IsOther(f_.row->crc);
    if (f_.row != nullptr && !GivesWay() && !(other && MakesNoRow())) {
      return other ? Conflict() : ByRow();
    }
    if (f_.letter != nullptr) return ByLetter();
    if (Known(f_.facts.record) != nullptr && Found(f_.facts.record) == nullptr)
      return NoSuchRecord();
    if (!f_.facts.no_id.empty()) return WithoutId();
    if (f_.facts.id.empty()) return JudgeUnknown(f_);
    const bool filtered = IsMarkOfOther() ? MakesNoRow() : f_.facts.makes_rows == false;
    if (f_.done > 0 && !filtered) return ByMark();
    if (f_.past && f_.RowUnknown()) return JudgeUnknown(f_);
    if (f_.past) return filtered ? NoOutput() : PassedBy();
    if (!f_.facts.no_row.empty()) {
      return {"bad_record", fmt::format("It is refused by {}.", Printable(f_.facts.no_row)),
              WhatABadRecordDoes()};
    }
    return JudgeUnfinished(f_);
  }

 private:
  [[nodiscard]] bool IsOther(const std::optional<locking::ContentCrc>& content) const {
    return f_.facts.crc && content && locking::IsOtherContent(*f_.facts.crc, *content);
  }
  // By position, as the ledger says, and it was not replayed since.
  [[nodiscard]] bool IsDeadLetter() const {
    return by_position_ && f_.row != nullptr && f_.row->token == locking::Token();
  }
  // The row says that nothing was written for a record of other content.
  [[nodiscard]] bool GivesWay() const {
    return f_.row->token == locking::Token() && f_.facts.crc && f_.row->crc &&
           *f_.facts.crc != *f_.row->crc;
  }
  // Another content has its id, and that is no conflict: so says a handler without effects; or the
  // offset is past it, and there was none.
  [[nodiscard]] bool MakesNoRow() const {
    if (f_.facts.makes_rows) return !*f_.facts.makes_rows;
    return f_.options.handler.any() && f_.past && !MayHaveConflicted();
  }
  [[nodiscard]] bool MayHaveConflicted() const {
    const OnBad rule = f_.options.on_id_conflict;
    return f_.letter != nullptr || rule == OnBad::kSkip ||
           (rule == OnBad::kDeadLetter &&
            (Known(f_.facts.letters) == nullptr || f_.facts.letters_partly));
  }
  // By now a row would be made of it, yet it passed without a conflict: its content was done before
  // without a row, by what the handler saw then.
  [[nodiscard]] bool WasSkippedBefore() const {
    return f_.options.handler.any() && f_.facts.makes_rows == true && !by_position_ &&
           !MayHaveConflicted();
  }
  // It was done without a row of the table.
  [[nodiscard]] bool MadeNoRow() const {
    if (f_.row->token == locking::Token() && !GivesWay()) return true;
    const bool none = IsOther(f_.row->crc) ? MakesNoRow() || WasSkippedBefore()
                                           : GivesWay() && !MayHaveConflicted();
    return none && f_.past && !IsOwnRow();
  }
  [[nodiscard]] const NodeFacts* Mark() const {
    const auto mark = std::ranges::find(f_.facts.nodes, NodeState::kDone, &NodeFacts::state);
    return f_.done > 0 ? &*mark : nullptr;
  }
  [[nodiscard]] bool IsMarkOfOther() const {
    return Mark() != nullptr && f_.facts.crc &&
           consumer::MarkIsOfOtherContent(Mark()->crc, *f_.facts.crc);
  }
  [[nodiscard]] std::string ConflictRule() const {
    const OnBad rule = f_.options.on_id_conflict;
    return fmt::format("on_id_conflict: {}", rule == OnBad::kDeadLetter ? "dead_letter"
                                             : rule == OnBad::kSkip     ? "skip"
                                                                        : "stop");
  }
  [[nodiscard]] std::string PastIt() const {
    return fmt::format("Nothing unless you act: the offset is past it ({}).", ConflictRule());
  }
  [[nodiscard]] std::string HowLongKept() const {
    if (by_position_) return "its partition's ledger row is there, which does not grow";
    if (!f_.options.ledger_keep) return "its ledger row is kept for ever (no ledger.keep)";
    return "its ledger row is kept for " + SpanText(*f_.options.ledger_keep) + " (ledger.keep)";
  }
  // Where the record itself was done or skipped, and the offset is not past it.
  [[nodiscard]] std::string OffsetFollows() const {
    if (!f_.group_known) return "";
    return "The group's offset passes it once everything before it in the partition is finished; "
           "if a worker reads it again before that, it finds this and skips it.";
  }
  [[nodiscard]] bool IsOwnRow() const {
    return f_.facts.position && f_.row->source == f_.facts.position->Text();
  }

  // By position an id that is not the record's own place is that of its original.
  [[nodiscard]] bool IsReplay() const {
    return by_position_ && f_.facts.position_from != PositionFrom::kLedgerRow &&
           f_.facts.position && !IsOwnRow();
  }
  // By position: the partition's row is older than the record.
  [[nodiscard]] std::string IsOfAnotherLog() const {
    const auto* read = Found(f_.facts.record);
    const auto* time =
        read != nullptr && read->record.timestamp ? &*read->record.timestamp : nullptr;
    if (!by_position_ || time == nullptr ||
        MomentText(locking::WallTime(*time)) <= f_.row->completed_at)
      return "";
    return " But the record is younger than that: if the topic was made again since, it is not "
           "done "
           "(the worker says topic_replaced).";
  }

  // By position the ledger's ranges cover filtered offsets, too.
  [[nodiscard]] bool IsOwnEffect() const {
    return f_.row != nullptr && !by_position_ && IsOwnRow();
  }
  [[nodiscard]] Verdict Filtered() const {
    return {"filtered",
            fmt::format("Filtered: {} (when). It has no effect{}.", Printable(f_.facts.filtered),
                        f_.past ? ", unless `when` was another one when a worker read it" : ""),
            f_.past || !f_.group_known
                ? "Nothing."
                : "The group's offset passes it once everything before it in the partition is "
                  "finished."};
  }

  [[nodiscard]] Verdict Conflict() const {
    Verdict verdict{.code = "id_conflict"};
    verdict.happened = fmt::format(
        "The same id is in the ledger with other content (from {}, completed {}): an id "
        "conflict{}. This record has no effect.{}",
        Printable(f_.row->source), f_.row->completed_at,
        MayBeSkipped() ? ", unless this record, or one of its content before, made no row" : "",
        by_position_ || IsOwnRow() ? " Was the topic recreated?" : "");
    if (f_.letter != nullptr) {
      verdict.next =
          fmt::format("Nothing unless you act: it is in the dead letter topic. {}", AsNewId());
    } else if (f_.past) {
      verdict.next = PastIt();
    } else if (by_position_ || f_.options.on_id_conflict == OnBad::kStop) {
      verdict.next = "The worker that reads it stops, with this explanation.";
    } else {
      verdict.next = fmt::format("When a worker reads it, it does what {} says.", ConflictRule());
    }
    return verdict;
  }

  // The rule that it met is not known.
  [[nodiscard]] bool MayBeSkipped() const {
    return f_.options.handler.any() && f_.past && f_.letter == nullptr && !by_position_ &&
           !IsOwnRow();
  }
  [[nodiscard]] std::string AsNewId() const {
    const std::string replay =
        fmt::format("fencepost dlq replay {}{} --as-new-id --execute sends it back all the same",
                    f_.facts.file, Choice());
    if (by_position_ || f_.options.identity.accept_replay_ids) return replay + ", under a new id.";
    return replay +
           " only with kafka.accept_replay_ids: true; without it, as now, the replay has "
           "the same id and conflicts again.";
  }

  [[nodiscard]] std::string WhyNoRowIsMade() const {
    if (f_.facts.makes_rows == true) {
      return "skipped, since a record with its id and content was most likely done before without "
             "a row (or its dead letter is gone)";
    }
    if (f_.facts.null_value || !f_.options.handler.any()) {
      return "no row is made of it, since its value is null (on_null_value: skip)";
    }
    return "the handler returned no row";
  }

  [[nodiscard]] Verdict NoOutput() const {
    const std::string how = WhyNoRowIsMade();
    if (f_.row == nullptr) return {"no_output", fmt::format("Done: {}.", how), "Nothing."};
    if (IsOther(f_.row->crc) || GivesWay()) {
      return {"no_output",
              fmt::format("Done: {}. It leaves its id to others: the ledger's row of its id is of "
                          "another record ({}).",
                          how, Printable(f_.row->source)),
              "Nothing."};
    }
    return {"no_output",
            fmt::format("Done: {}, so nothing was written for it (at {} by worker {}).", how,
                        f_.row->completed_at, Printable(f_.row->worker)),
            "Nothing. Another record with this id and the same content is skipped; one of other "
            "content is processed."};
  }

  [[nodiscard]] Verdict ByRow() const {
    const std::string at = f_.row->completed_at;
    const std::string worker = Printable(f_.row->worker);
    if (IsOwnRow() || f_.facts.position_from == PositionFrom::kLedgerRow) {
      return {
          "done",
          fmt::format("Done: its effect was committed at {}{}.{}", at,
                      f_.row->crc                ? " by worker " + worker
                      : f_.options.handler.any() ? " or before, unless the handler returned no row"
                                                 : " or before",
                      f_.facts.newer_row ? " Its row has a newer change now, by fence_by: that "
                                           "one replaced it; or a newer change had been written "
                                           "before, and this one had no effect."
                                         : "") +
              IsOfAnotherLog(),
          f_.past || !f_.group_known
              ? fmt::format("Nothing. Another record with this id is skipped while {}.",
                            HowLongKept())
              : OffsetFollows()};
    }
    if (by_position_) return Replayed();
    return {
        "duplicate",
        fmt::format("Another record with the same id{} took effect: {}, committed at {} by "
                    "worker {}.{}",
                    f_.facts.crc && f_.row->crc ? " and the same content" : "",
                    Printable(f_.row->source), at, worker,
                    f_.letter == nullptr ? ""
                                         : " It was a dead letter before; this is its replay, or "
                                           "another record with this id."),
        f_.past ? "Nothing: it was skipped."
                : "The worker that reads it finds the row and skips it."};
  }

  [[nodiscard]] Verdict Replayed() const {
    const std::string original = Printable(f_.row->source);
    return {"replayed",
            fmt::format("It is the replay of {}, which is done: by this replay, by another one, or "
                        "by itself{}.",
                        original,
                        f_.facts.newer_row ? ". Its row has a newer change, by fence_by" : ""),
            f_.past ? "Nothing." : "The worker that reads it finds that and skips it."};
  }
  [[nodiscard]] Verdict ReplayFailed() const {
    return {
        "dead_lettered",
        fmt::format("It is the replay of {}, which is still a dead letter: nothing was written "
                    "for it.",
                    Printable(f_.row->source)),
        fmt::format("Nothing unless you act: fencepost explain {} {} says where its letter is, and "
                    "why.",
                    f_.facts.file, WordsOf(f_.row->source))};
  }

  // As explain's arguments: TOPIC PARTITION OFFSET.
  [[nodiscard]] static std::string WordsOf(const std::string& source) {
    const auto position = ParsePosition(source);
    return position ? fmt::format("{} {} {}", position->where.topic, position->where.partition,
                                  position->offset)
                    : ShellWord(source);
  }

  [[nodiscard]] Verdict ByLetter() const {
    Verdict verdict{.code = "dead_lettered"};
    verdict.happened = fmt::format("It failed ({}: {}) and was published to {} at {}.",
                                   Printable(f_.letter->error_class), Printable(f_.letter->error),
                                   f_.letter->at().Text(), Printable(f_.letter->failed_at));
    if (f_.group_known && !f_.past && !IsDeadLetter()) {
      const bool first = f_.committed != nullptr && f_.facts.position->offset == *f_.committed;
      verdict.next = fmt::format(
          "The group's offset {}. A worker that reads it again before that processes it again, so "
          "there may be a dead letter and an effect.",
          first ? "is at it, and passes it with the worker's next commit, unless the worker ended "
                  "between the publish and the commit"
                : "passes it once everything before it in the partition is finished");
    } else {
      verdict.next = fmt::format(
          "Nothing unless you act. fencepost dlq replay {} --topic {} --partition {} --offset {} "
          "tells whether it can be sent back, and does it with --execute.",
          f_.facts.file, f_.letter->origin.where.topic, f_.letter->origin.where.partition,
          f_.letter->origin.offset);
    }
    return verdict;
  }

  [[nodiscard]] Verdict LetterIsGone() const {
    return {
        "dead_lettered",
        fmt::format("It became a dead letter at {}: nothing was written for it. The letter is "
                    "not in the topic any more.",
                    f_.row->completed_at),
        fmt::format("Nothing. fencepost forget {} {} --execute takes it back, so that it is "
                    "processed again.",
                    f_.facts.file,
                    f_.facts.position
                        ? fmt::format("--topic {0} --partition {1} --from {2} --to {2}",
                                      f_.facts.position->where.topic,
                                      f_.facts.position->where.partition, f_.facts.position->offset)
                        : "--id " + ShellWord(f_.facts.id))};
  }

  // Of dlq replay: this record's letter alone.
  [[nodiscard]] std::string Choice() const {
    if (!f_.facts.position) return "";
    return fmt::format(" --topic {} --partition {} --offset {}", f_.facts.position->where.topic,
                       f_.facts.position->where.partition, f_.facts.position->offset);
  }

  [[nodiscard]] Verdict NoSuchRecord() const {
    const auto* range = Known(f_.facts.range);
    const std::string trace = f_.done > 0 ? " The lock nodes remember its id as DONE." : "";
    if (range != nullptr && f_.facts.position->offset < range->first) {
      return {"gone",
              fmt::format("It is not there any more: the oldest offset that Kafka keeps is {} "
                          "(retention).{}",
                          range->first, trace),
              f_.past || !f_.group_known
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
    const std::string happened = fmt::format("It has no record id: {}.", Printable(f_.facts.no_id));
    if (!f_.past) return {"bad_record", happened, WhatABadRecordDoes()};
    return {"bad_record", happened + " The group's offset is past it.",
            f_.options.on_bad_record == OnBad::kDeadLetter
                ? "Nothing: its dead letter is not in the topic any more, or the group began after "
                  "it."
                : "Nothing: the group began after it, or was moved past it."};
  }

  [[nodiscard]] std::string WhatABadRecordDoes() const {
    if (f_.facts.handler_refuses) {
      return f_.options.dead_letter
                 ? "The worker that reads it sends it to the dead letter topic."
                 : "The worker that reads it ends with exit code 1 (there is no dead_letter "
                   "section), and so does each that is started after it.";
    }
    if (f_.options.on_bad_record == OnBad::kDeadLetter) {
      return "The worker that reads it sends it to the dead letter topic (on_bad_record: "
             "dead_letter).";
    }
    return fmt::format(
        "The worker that reads it ends with exit code 1, and so does each that is started after it "
        "(on_bad_record: stop): {}.",
        consumer::kBadRecordHint);
  }

  [[nodiscard]] Verdict ByMark() const {
    const std::string rest = f_.LongestRest(NodeState::kDone);
    const std::string drawn = f_.Drawn(NodeState::kDone);
    const bool elsewhere =
        f_.facts.cluster && consumer::IsOfAnotherCluster(Mark()->crc, *f_.facts.cluster);
    if (IsMarkOfOther()) {
      return {"id_conflict",
              fmt::format("Another record with the same id and other content is DONE (on {}, under "
                          "the token drawn {}): an id conflict.",
                          f_.Nodes(f_.done), drawn),
              f_.past ? PastIt()
                      : fmt::format("The worker that reads it does what {} says, while the mark is "
                                    "remembered (another {}).",
                                    ConflictRule(), rest)};
    }
    return {
        "done",
        fmt::format("Done: this record, or another one with its id{}, is marked DONE on {}, "
                    "under the token drawn {}.",
                    elsewhere ? " in another Kafka cluster" : "", f_.Nodes(f_.done), drawn),
        f_.past || !f_.group_known
            ? fmt::format(
                  "Nothing. Another record with this id is skipped for another {}, then processed.",
                  rest)
            : OffsetFollows()};
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
    if (f_.finality == Finality::kTransaction) {
      return done("in the Kafka transaction that holds the output", "");
    }
    if (f_.finality == Finality::kWrite) {
      return done("after the write",
                  fmt::format(" The lock nodes have no mark of it (lock.remember_done: {}).",
                              SpanText(f_.options.lock.lock.remember_done)));
    }
    const std::string why = f_.options.ledger_keep
                                ? fmt::format("its row was pruned (ledger.keep: {}), ",
                                              SpanText(*f_.options.ledger_keep))
                                : "";
    return {"passed_without_trace",
            fmt::format("The group's offset is past it, and there is no trace of it: {}the group "
                        "began after it, its offset was moved by hand, the row was forgotten or "
                        "lost with the database (failed over, restored), or its dead letter is "
                        "gone.",
                        why),
            again};
  }

  const Findings f_;
  const bool by_position_;
};

}  // namespace

Verdict Judge(const Facts& facts) { return Judgement(facts).Say(); }

}  // namespace fencepost::cli
