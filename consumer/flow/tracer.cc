#include "consumer/flow/tracer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "consumer/flow/handler_calls.h"
#include "consumer/flow/state/assignment.h"
#include "consumer/flow/state/lock_unit.h"

namespace fencepost::consumer {
namespace {

std::string_view ResultName(ProcessedResult result) {
  switch (result) {
    case ProcessedResult::kDone:
      return "done";
    case ProcessedResult::kSkipped:
      return "skipped";
    case ProcessedResult::kDeadLettered:
      return "dead_lettered";
    case ProcessedResult::kFailed:
      return "failed";
    case ProcessedResult::kNoOutput:
      return "no_output";
    case ProcessedResult::kFiltered:
      return "filtered";
  }
  return "";
}

// Of the stages that somebody else works in; empty: of the others there is no span.
std::string_view SpanName(Stage stage) {
  switch (stage) {
    case Stage::kLocking:
      return "lock";
    case Stage::kLookup:
      return "look up";
    case Stage::kHandling:
      return "handle";
    case Stage::kWriting:
      return "write";
    case Stage::kPublishingDeadLetter:
      return "dead letter";
    default:
      return "";
  }
}

SpanKind KindOf(Stage stage) {
  return stage == Stage::kPublishingDeadLetter ? SpanKind::kProducer : SpanKind::kClient;
}

// The wall clock's time of an instant before now.
Nanos Unix(Instant at, Now now) { return now.wall.time_since_epoch() - (now.boot - at); }

// Of a sampler by ratio: it goes by the last 64 bits of the trace id.
bool IsSampled(const TraceContext& context, double ratio) {
  return ratio >= 1 || static_cast<double>(context.trace_low) < std::ldexp(ratio, 64);
}

}  // namespace

TraceContext Tracer::NewTrace() {
  if (seed_ == 0) seed_ = random_() | 1;
  TraceContext context;
  context.trace_high = DerivedId(seed_, made_++);
  context.trace_low = DerivedId(seed_, made_++);
  context.span = DerivedId(seed_, made_++);
  return context;
}

void Tracer::Begin(InFlight& in) {
  if (!on()) return;
  if (in.trace == nullptr) in.trace = std::make_unique<RecordTrace>(&clock_);
  TraceContext context = NewTrace();
  std::uint64_t parent = 0;
  if (const auto given = TraceOf(in.record)) {
    parent = given->span;
    context = given->WithSpan(context.span);
  }
  if (parent == 0 || !options_.traces.parent_decides) {
    context.sampled = IsSampled(context, options_.traces.sample);
  }
  in.trace->Begin(context, parent);
}

bool Tracer::Keeps(const InFlight& in, Now now) const {
  const RecordTrace* const trace = in.trace.get();
  if (trace == nullptr || !trace->context().there()) return false;
  if (trace->kept()) return true;
  const auto locked = std::ranges::find(trace->steps(), Stage::kLocking, &RecordTrace::Step::stage);
  return locked != trace->steps().end() && now.boot - locked->from >= options_.traces.slow;
}

void Tracer::OnWritten(const WriteBatch& batch, const std::vector<WriteOutcome>& outcomes,
                       Now now) {
  if (!on()) return;
  Span span{.context = NewTrace(), .name = "transaction", .kind = SpanKind::kClient};
  std::size_t written = 0;
  for (std::size_t i = 0; i < batch.records.size(); ++i) {
    InFlight& in = *batch.records[i];
    if (in.trace == nullptr) continue;
    in.trace->OnTransaction(span.context);
    const WriteResult result = outcomes[i].result;
    written += EffectIsWritten(result) ? 1 : 0;
    const bool refused = result == WriteResult::kIdConflict || result == WriteResult::kBadRecord;
    if (refused || Keeps(in, now)) span.links.push_back(in.trace->OfNow());
  }
  if (span.links.empty()) return;
  span.start = Unix(batch.began == Instant() ? now.boot : batch.began, now);
  span.end = Unix(now.boot, now);
  span.attributes = {
      {options_.output_system == "kafka" ? "messaging.system" : "db.system.name",
       options_.output_system},
      {"db.operation.batch.size", static_cast<std::int64_t>(batch.records.size())},
      {"fencepost.pipeline", options_.pipeline},
      {"fencepost.written", static_cast<std::int64_t>(written)},
  };
  if (written == 0) span.error = "nothing was written";
  observer_->OnSpans({std::move(span)});
}

void Tracer::End(InFlight& in, ProcessedResult result, Now now) {
  if (in.trace == nullptr || !in.trace->context().there()) return;
  if (result == ProcessedResult::kFailed || Keeps(in, now)) {
    std::vector<Span> spans{SpanOf(in, result, now)};
    AddSteps(in, now, spans);
    if (options_.finality != Finality::kTransaction && result != ProcessedResult::kFailed &&
        uncommitted_.size() < kMostUncommitted) {
      uncommitted_.push_back(
          {in.record.partition, in.record.epoch, in.record.offset, in.trace->context()});
    }
    observer_->OnSpans(std::move(spans));
  }
  in.trace->End();
}

Span Tracer::SpanOf(const InFlight& in, ProcessedResult result, Now now) const {
  const RecordTrace& trace = *in.trace;
  Span span{.context = trace.context(),
            .parent = trace.parent(),
            .name = "process " + in.where->topic,
            .kind = SpanKind::kConsumer};
  span.start = Unix(trace.steps().empty() ? now.boot : trace.steps().front().from, now);
  span.end = Unix(now.boot, now);
  span.attributes = {
      {"messaging.system", "kafka"},
      {"messaging.operation.name", "process"},
      {"messaging.operation.type", "process"},
      {"messaging.destination.name", in.where->topic},
      {"messaging.destination.partition.id", std::to_string(in.where->partition)},
      {"messaging.kafka.offset", in.record.offset},
      {"messaging.consumer.group.name", options_.group},
      {"fencepost.pipeline", options_.pipeline},
      {"fencepost.result", std::string(ResultName(result))},
      {"fencepost.attempts", static_cast<std::int64_t>(in.attempts)},
  };
  if (!in.identity.id.empty()) span.attributes.emplace_back("fencepost.record_id", in.identity.id);
  if (const auto token = TokenOf(in).value(); token != 0) {
    span.attributes.emplace_back("fencepost.token", static_cast<std::int64_t>(token));
  }
  if (trace.left_out() > 0) {
    span.attributes.emplace_back("fencepost.steps_left_out",
                                 static_cast<std::int64_t>(trace.left_out()));
  }
  for (const RecordTrace::Event& event : trace.events()) {
    span.events.push_back({.at = Unix(event.at, now),
                           .name = event.name,
                           .attributes = {{"fencepost.text", event.text}}});
  }
  if (in.letter != nullptr) {
    span.error = ClassAndText(in.letter->error_class, in.letter->shown);
    span.attributes.emplace_back("error.type", in.letter->error_class);
  } else if (result == ProcessedResult::kFailed) {
    span.error = trace.events().empty() ? "the pipeline stops here" : trace.events().back().text;
  }
  return span;
}

void Tracer::AddSteps(const InFlight& in, Now now, std::vector<Span>& spans) const {
  const RecordTrace& trace = *in.trace;
  for (auto step = trace.steps().begin(); step != trace.steps().end(); ++step) {
    const std::string_view name = SpanName(step->stage);
    if (name.empty()) continue;
    const Instant end = std::next(step) == trace.steps().end() ? now.boot : std::next(step)->from;
    Span& span = spans.emplace_back(Span{.context = trace.Of(*step),
                                         .parent = trace.context().span,
                                         .name = std::string(name),
                                         .kind = KindOf(step->stage),
                                         .start = Unix(step->from, now),
                                         .end = Unix(end, now)});
    span.error = step->error;
    if (step->stage == Stage::kHandling) {
      span.name = "handle " + options_.handler_kind;
    } else if (step->stage == Stage::kWriting) {
      span.attributes.emplace_back("fencepost.output", options_.output_system);
      if (step->transaction.there()) span.links.push_back(step->transaction);
    } else if (step->stage == Stage::kLocking) {
      span.attributes.emplace_back("fencepost.lock", "redlock");
    }
  }
}

void Tracer::OnCommitted(const std::vector<PartitionOffset>& offsets, Instant sent, Now now) {
  if (uncommitted_.empty()) return;
  std::vector<Span> spans;
  for (const PartitionOffset& offset : offsets) {
    std::erase_if(uncommitted_, [&](const Uncommitted& record) {
      if (record.partition != offset.partition) return false;
      if (record.epoch != offset.epoch) return record.epoch < offset.epoch;
      if (record.offset >= offset.next) return false;
      spans.push_back({.context = record.context.WithSpan(
                           DerivedId(record.context.span, RecordTrace::kCommitNumber)),
                       .parent = record.context.span,
                       .name = "commit",
                       .kind = SpanKind::kClient,
                       .start = Unix(sent, now),
                       .end = Unix(now.boot, now),
                       .attributes = {{"messaging.system", "kafka"},
                                      {"messaging.operation.name", "commit"},
                                      {"messaging.operation.type", "settle"},
                                      {"messaging.consumer.group.name", options_.group}}});
      return true;
    });
  }
  if (!spans.empty()) observer_->OnSpans(std::move(spans));
}

}  // namespace fencepost::consumer
