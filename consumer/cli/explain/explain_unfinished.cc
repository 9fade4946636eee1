// A record that is still to be finished: who has it, what it waits for, how often its handler has
// failed, and when it is tried again or given up.
#include <algorithm>

#include <fmt/format.h>

#include "consumer/cli/explain/explain_findings.h"
#include "consumer/cli/shared/moments.h"
#include "consumer/flow/ports/retry.h"
#include "consumer/pipeline/error_class.h"
#include "consumer/record/dead_letter.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

using consumer::OnBad;

constexpr const char* kNothingIsWritten =
    "The ledger's database could not be asked: nothing is written until the workers can reach it.";

const char* WaitsInOrder(const Findings& f) {
  if (f.committed == nullptr || f.facts.position->offset == *f.committed) return "";
  switch (f.options.processing.order) {
    case consumer::Order::kKey:
      return ", or waits in its order behind an earlier record of its key";
    case consumer::Order::kPartition:
      return ", or waits in its order behind an earlier record of its partition";
    case consumer::Order::kNone:
      break;
  }
  return "";
}

Verdict ByLock(const Findings& f) {
  const int quorum = locking::Quorum(static_cast<int>(f.facts.nodes.size()));
  const std::string rest = f.LongestRest(NodeState::kHeld);
  const std::string drawn = f.Drawn(NodeState::kHeld);
  if (f.held >= quorum) {
    return {"in_progress",
            fmt::format("A worker holds its lock on {}, under the token drawn {}: this record, "
                        "or another one {}, is being processed{}.",
                        f.Nodes(f.held), drawn,
                        LockBlock(f.options) > 1 ? "of its block of offsets" : "with its id",
                        WaitsInOrder(f)),
            fmt::format("The worker extends the lease until it is done; if it dies, another one "
                        "takes over within {}.",
                        rest)};
  }
  if (f.held > 0) {
    return {"locking",
            fmt::format("{} hold a lock on it, which is no majority ({} are needed): a worker is "
                        "just taking it, or gave up, or the other nodes are away.",
                        f.Nodes(f.held), quorum),
            fmt::format("It is asked for again until a majority grants it; what the nodes hold "
                        "now ends within {}.",
                        rest)};
  }
  return {"takeover",
          fmt::format("A lock of it is on {}, past its deadline (token drawn {}): its holder "
                      "died, or froze, before it was done.",
                      f.Nodes(f.expired), drawn),
          "The next worker that reads it takes the lock over and processes it; if the old holder "
          "comes back, the fence refuses its write."};
}

Verdict Waiting(const Findings& f) {
  if (f.committed == nullptr) {
    return {"waiting", "Nothing yet: the group has committed nothing of this partition.",
            f.options.kafka.start_from == consumer::StartFrom::kEarliest
                ? "A worker reads it after everything before it in the partition (start_from: "
                  "earliest)."
                : "The first worker of a new group begins at the end of the topic (start_from: "
                  "latest): then this record is not read."};
  }
  Verdict verdict{"waiting", "Nothing yet: it is not committed, and no worker holds its lock.", ""};
  if (f.facts.failing) return verdict;
  if (const consumer::Offset before = f.facts.position->offset - *f.committed; before > 0) {
    verdict.next =
        fmt::format("A worker gets to it: the group's committed offset is {} before it.{}", before,
                    f.facts.others_fail == 0
                        ? ""
                        : fmt::format(" The handler fails for {} of the partition's records.",
                                      f.facts.others_fail));
    return verdict;
  }
  verdict.next =
      "It is the next one of its partition: a worker takes it up at once, or once one runs. If it "
      "stays like this, no worker has the partition, or this record holds it back: see /status and "
      "the workers' log.";
  if (f.options.on_bad_record == OnBad::kStop) {
    verdict.next += fmt::format(
        " If workers end at it with exit code 1 (the event bad_record says why; on_bad_record: "
        "stop): {}.",
        consumer::kBadRecordHint);
  }
  return verdict;
}

void Add(std::string& text, const std::string& sentence) {
  text += (text.empty() ? "" : " ") + sentence;
}

const char* WhereGivenUp(const Findings& f) {
  return f.options.dead_letter ? "becomes a dead letter"
                               : "ends the worker with exit code 1 (no dead_letter section)";
}

std::string WhenGivenUp(const Findings& f, const consumer::FailedRecord& failing) {
  consumer::RetryOptions retry = f.options.retry;
  retry.jitter = consumer::Jitter::kNone;  // the longest wait
  const auto wait = RetryBackoff(retry, std::max(1, failing.attempts), 0);
  const WallTime last(failing.last);
  const std::string due = fmt::format("The next attempt is due by {}. ", MomentText(last + wait));
  if (failing.attempts == 0) return due + "It is tried again until the handler is reached.";
  const char* const end = WhereGivenUp(f);
  if (consumer::MatchClass(retry.never, failing.why) != consumer::ClassMatch::kNone &&
      !MayRetry(f.options.handler, retry, {.error_class = failing.why, .text = ""})) {
    return due + fmt::format("retry.never names {}: by the same answer it {}.", failing.why, end);
  }
  return due + fmt::format(
                   "{}, it is given up after {} attempts and {} of that, at {} at the soonest: "
                   "then it {}.",
                   consumer::IsAboutTheCaller(failing.why) ? "While the service takes others"
                                                           : "If only this record fails",
                   retry.attempts, SpanText(retry.give_up_after),
                   MomentText(last + std::max(wait, retry.give_up_after - failing.alone)), end);
}

bool IsRefusedForOthers(const consumer::FailedRecord& failing) {
  return failing.why == consumer::kRefusedForOthers;
}

// Behind "its handler" or "the handler of …".
std::string FailuresText(const consumer::FailedRecord& failing) {
  const std::string last = MomentText(WallTime(failing.last));
  const std::string why = failing.why.empty() ? "see the log" : failing.why;
  if (failing.attempts == 0) return fmt::format("was not reached, last at {} ({}).", last, why);
  return fmt::format("has failed {} time{}, last at {} ({}).", failing.attempts,
                     failing.attempts == 1 ? "" : "s", last, why);
}

std::string RefusalText(const std::string& whose, const consumer::FailedRecord& refused) {
  return fmt::format(
      "{} was refused by the output, last at {}: it breaks a unique or foreign key. Its worker's "
      "/status, and its log at the event row_refused, name the table and the constraint.",
      whose, MomentText(WallTime(refused.last)));
}

void AddFailures(const Findings& f, Verdict& verdict) {
  if (const auto& first = f.facts.first_fails) {
    const std::string which = fmt::format("the partition's first unfinished record, {}",
                                          Position{f.facts.position->where, first->offset}.Text());
    Add(verdict.happened, IsRefusedForOthers(*first)
                              ? RefusalText("The row of " + which + ",", *first)
                              : fmt::format("The handler of {}, {}", which, FailuresText(*first)));
  }
  if (!f.facts.failing) return;
  const consumer::FailedRecord& failing = *f.facts.failing;
  if (IsRefusedForOthers(failing)) {
    Add(verdict.happened, RefusalText("Its row", failing));
    Add(verdict.next,
        fmt::format("It is written again for about a minute, since another record may mend that: "
                    "then it {}.",
                    WhereGivenUp(f)));
    return;
  }
  Add(verdict.happened, "Its handler " + FailuresText(failing));
  Add(verdict.next,
      f.facts.unavailable
          ? "The handler's service counted as unavailable: the worker makes one call at a time "
            "until one succeeds, and gives no record up meanwhile; its /ready says why."
          : WhenGivenUp(f, failing));
}

}  // namespace

Verdict JudgeUnfinished(const Findings& f) {
  const bool locked = f.held + f.expired > 0;
  if (!locked && (f.RowUnknown() || f.reached == 0 || !f.group_known)) return JudgeUnknown(f);
  Verdict verdict = locked ? ByLock(f) : Waiting(f);
  AddFailures(f, verdict);
  if (f.RowUnknown()) Add(verdict.next, kNothingIsWritten);
  return verdict;
}

Verdict JudgeUnknown(const Findings& f) {
  Verdict verdict{"unknown", "", "Ask again when every part can be reached."};
  if (f.RowUnknown() && !f.past)
    verdict.next = fmt::format("{} {}", kNothingIsWritten, verdict.next);
  const auto add = [&](bool holds, const std::string& sentence) {
    if (holds) Add(verdict.happened, sentence);
  };
  const bool has_id = !f.facts.id.empty();
  add(!has_id, "The record could not be read, so its id is not known.");
  add(f.done > 0, fmt::format("{} say DONE, so it was most likely done.", f.Nodes(f.done)));
  add(f.done == 0 && f.past,
      "The group's offset is past it, so it was most likely done, skipped or dead-lettered.");
  add(has_id && f.RowUnknown(), "The ledger could not be asked, and it decides.");
  add(has_id && f.reached == 0, "No lock node could be asked whether a worker holds it.");
  add(has_id && f.facts.position && !f.group_known,
      "Kafka could not be asked how far the group is.");
  if (!verdict.happened.empty()) return verdict;
  return {"waiting", "No part knows this id: no ledger row, no mark, no lock, no dead letter.",
          "If there is such a record, it is still to be processed, or its traces are gone: give "
          "TOPIC PARTITION OFFSET to learn more."};
}

}  // namespace fencepost::cli
