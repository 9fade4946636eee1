// What the flow tells once a second: lag, the oldest record of each partition, stalls, what the
// ledger may forget; and the status.
#include <algorithm>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kReportInterval{1000};
constexpr std::size_t kNamedProbes = 3;

// It is still to be handled, or tried again.
bool NeedsHandler(const InFlight& in) {
  switch (in.stage()) {
    case Stage::kUnused:
    case Stage::kBlocked:
    case Stage::kFinished:
    case Stage::kWaitingForSameId:  // what becomes of the one before it decides
      return false;
    default:
      return !in.handled && in.letter == nullptr;
  }
}

// What is still to be finished: one that holds the watermark is one, however many offsets behind it
// are done or hold no record.
std::int64_t LagOf(const Assignment& partition) {
  return std::max<Offset>(0, partition.end - partition.position) +
         static_cast<Offset>(partition.unfinished);
}

}  // namespace

void Flow::Report(Now now) {
  report_at_ = now.boot + kReportInterval;
  std::int64_t gap = 0;
  std::size_t paused = 0;
  std::optional<std::chrono::milliseconds> oldest;
  stalled_.clear();
  LookForRefusal(now);
  LookForProbes(now);
  LookForFailing();
  LookForWrittenAgain();
  for (const auto& [index, partition] : partitions_) {
    LookForStall(*partition, now);
    gap += partition->watermark - partition->committed;
    paused += partition->paused ? 1 : 0;
    observer_->OnLag(partition->where, LagOf(*partition));
    const InFlight* first = partition->Oldest();
    observer_->OnOldest(partition->where, first == nullptr ? -1 : first->record.offset,
                        first == nullptr ? Nanos(0) : now.boot - partition->oldest_since);
    if (first == nullptr) continue;
    const auto& timestamp = first->record.timestamp;
    if (timestamp && (!oldest || *timestamp < *oldest)) oldest = timestamp;
  }
  observer_->OnCommitGap(gap);
  observer_->OnOldestUnprocessed(oldest.value_or(std::chrono::milliseconds(0)));
  observer_->OnPartitions(partitions_.size(), paused);
  observer_->OnInFlight(backpressure_.records(), backpressure_.bytes());
  TellPrunable(now);
}

// Nothing while any partition is behind the end that it had at its assignment: an id may come again
// in what is still to be read, after a restored backup for example. And only what was committed a
// while ago: a transaction that had no answer, and was written again, may still be on its way, and
// would find no row, where another worker had written it so long ago that its row may go at once.
void Flow::TellPrunable(Now now) {
  if (!HasLedger()) return;
  const Nanos ago = Planted("just_committed_is_pruned")
                        ? Nanos(0)
                        : std::min<Nanos>(options_.ledger_row_lifetime.value_or(Millis(0)) / 2,
                                          options_.transaction_lasts);
  std::vector<SourceOffset>& prunable = actions_.prunable.emplace();
  for (const auto& [index, partition] : partitions_) {
    if (!partition->CaughtUp()) return prunable.clear();
    prunable.push_back({partition->where, partition->CommittedBefore(ago, now.boot)});
  }
}

// The oldest record has not moved for long: said with its position and what it waits for.
void Flow::LookForStall(Assignment& partition, Now now) {
  const InFlight* oldest = partition.Oldest();
  if (oldest == nullptr || paused_) return;
  const auto still = now.boot - partition.oldest_since;
  if (still < options_.stall_after) return;
  const std::string what =
      fmt::format("{} for {} s", StageName(oldest->stage()),
                  std::chrono::duration_cast<std::chrono::seconds>(still).count());
  stalled_ = fmt::format("{}: {}", SourceText(partition.where, oldest->record.offset), what);
  if (now.boot - partition.stall_told < options_.stall_after) return;
  partition.stall_told = now.boot;
  Note(locking::Severity::kError, "stalled", what, *oldest);
}

// The text is that of the first one, so that it stays the same while others come.
void Flow::LookForRefusal(Now now) {
  if (!dead_letter_limiter_.Full()) return refused_.clear();
  if (withheld_.empty()) return ForgetRefusal();
  refused_.clear();
  const bool long_ago = now.boot - withheld_.front().at >= options_.stall_after;
  if (!long_ago && MayTakeEffect()) return;
  const InFlight& first = *withheld_.front().record;
  const char* const columns = options_.handler.outside()
                                  ? "the handler's answers, columns and the table"
                                  : "columns, the table and the producer";
  refused_ = fmt::format(
      "every record is refused ({} in a row): {}; check {}, fix the file and start again; if they "
      "are bad, raise dead_letter.max_consecutive",
      dead_letter_limiter_.in_a_row(), first.letter->shown,
      first.cause == LetterCause::kOutput ? columns : "record_id and the producer");
}

// Not while one that was refused is tried again: its verdict is not known.
void Flow::ForgetRefusal() {
  const bool still = !refused_.empty() && dead_letter_limiter_.Full() &&
                     std::ranges::any_of(pool_, [](const InFlight& in) {
                       return in.stage() != Stage::kUnused && in.tried_again;
                     });
  if (!still) refused_.clear();
}

// Who may show that the service works again.
void Flow::LookForProbes(Now now) {
  only_tried_.clear();
  // At the stop the records are given back: that says nothing of the service.
  if (!calls_.unavailable() || !taking_) return;
  std::vector<const InFlight*> probes;
  bool others = false;  // behind them
  for (const InFlight& in : pool_) {
    if (!NeedsHandler(in)) continue;
    const bool behind = options_.handler.outside() && !BeforeIsHandled(in);
    others = others || behind;
    if (!behind && probes.size() <= kNamedProbes) probes.push_back(&in);
  }
  if (probes.size() < 2) calls_.OnOthersGone(probes.empty() ? nullptr : probes.front(), now);
  if (others && calls_.unclear()) NameProbes(probes);
}

// A few that fail, with all others behind them: these records may be bad as well as the service.
void Flow::NameProbes(const std::vector<const InFlight*>& probes) {
  const bool all_fail =
      std::ranges::all_of(probes, [](const InFlight* in) { return in->failing.last != 0; });
  if (probes.empty() || probes.size() > kNamedProbes || !all_fail) return;
  std::string names;
  for (const InFlight* in : probes) {
    const char* const before = names.empty() ? "" : in == probes.back() ? " and " : ", ";
    names += before + SourceText(*in->where, in->record.offset);
  }
  const char* const fail = probes.size() == 1   ? "it fails"
                           : probes.size() == 2 ? "both fail"
                                                : "all fail";
  only_tried_ =
      fmt::format("only {} can be tried; {}: {}", names, fail, probes.front()->failing.why);
}

// While the handler works for others, or there are none.
void Flow::LookForFailing() {
  failing_.clear();
  if (calls_.unavailable()) return;
  std::size_t count = 0;
  const InFlight* most = nullptr;
  for (const InFlight& in : pool_) {
    const bool fails = in.failing.last != 0 && in.failing.failures >= tuning_.retry.attempts;
    if (!NeedsHandler(in) || !fails) continue;
    ++count;
    if (most == nullptr || in.failing.failures > most->failing.failures) most = &in;
  }
  if (most == nullptr) return;
  failing_ =
      fmt::format("{} {}: {}, {} attempts",
                  count == 1 ? "only" : fmt::format("{} records fail; longest", count),
                  SourceText(*most->where, most->record.offset) + (count == 1 ? " fails" : ""),
                  most->failing.why, most->failing.failures);
}

// What it breaks is a rule between rows, which another record may mend.
void Flow::LookForWrittenAgain() {
  written_again_.clear();
  std::size_t count = 0;
  const InFlight* most = nullptr;
  for (const InFlight& in : pool_) {
    const bool again = in.refusals > 0 && !in.refused_why.empty() && in.letter == nullptr &&
                       (InLeasedPrefix(in.stage()) || WaitsForPrefix(in.stage())) &&
                       in.stage() != Stage::kFinished;
    if (!again) continue;
    ++count;
    if (most == nullptr || in.refusals > most->refusals) most = &in;
  }
  if (most == nullptr) return;
  written_again_ = fmt::format(
      "{} {}: {}; refused {} time{}, and written again for about a minute, since another record "
      "may make room",
      count == 1 ? "only" : fmt::format("the rows of {} records are refused; longest", count),
      SourceText(*most->where, most->record.offset) + (count == 1 ? " is refused" : ""),
      most->refused_why, most->refusals, most->refusals == 1 ? "" : "s");
}

// Some record that is here may still show that not all are bad.
bool Flow::MayTakeEffect() const {
  return std::ranges::any_of(pool_, [](const InFlight& in) {
    const bool busy = in.stage() == Stage::kLocking || in.stage() == Stage::kGranted;
    return in.letter == nullptr && !in.tried_again && (busy || InLeasedPrefix(in.stage()));
  });
}

void Flow::Note(locking::Severity severity, std::string_view event, std::string_view text,
                const InFlight& in) {
  observer_->OnRecordNote(severity, event, text,
                          {.where = *in.where,
                           .offset = in.record.offset,
                           .record_id = in.identity.id,
                           .token = TokenOf(in).value(),
                           .attempt = in.attempts,
                           .trace = in.trace ? in.trace->context() : TraceContext()});
  if (severity != locking::Severity::kInfo) in.Tell(event, text);
}

void Flow::FillStatus(WorkerStatus& status, Now now) const {
  status.in_flight_records = backpressure_.records();
  status.in_flight_bytes = backpressure_.bytes();
  status.leases_held = core_->held();
  for (const auto& [index, partition] : partitions_) {
    PartitionStatus& row = status.partitions.emplace_back();
    row.topic = partition->where.topic;
    row.partition = partition->where.partition;
    row.watermark = partition->watermark;
    row.end = partition->end;
    row.lag = LagOf(*partition);
    row.in_flight = partition->unfinished;
    row.finished_behind = partition->finished_behind();
    row.paused = partition->paused;
    const InFlight* oldest = partition->Oldest();
    if (oldest == nullptr) continue;
    row.oldest_offset = oldest->record.offset;
    row.oldest_stage = StageName(oldest->stage());
    row.oldest_for = std::chrono::duration_cast<Millis>(now.boot - partition->oldest_since);
    if (oldest->record.timestamp) {
      row.oldest_age = std::max(now.wall.time_since_epoch() - *oldest->record.timestamp, Millis(0));
    }
  }
}

}  // namespace fencepost::consumer
