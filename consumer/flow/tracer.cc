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

constexpr Millis kClocksMayDiffer{10};
constexpr std::size_t kMostLinks = 128;  // as OpenTelemetry's own limit

std::string_view ResultName(WriteResult result) {
  switch (result) {
    case WriteResult::kFenced:
      return "fenced";
    case WriteResult::kIdConflict:
      return "id_conflict";
    case WriteResult::kBadRecord:
      return "refused";
    case WriteResult::kNotWritten:
      return "not_written";
    default:
      return "";
  }
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
  const ParentTrace parent = TraceOf(in.record);
  TraceContext context = NewTrace();
  if (parent.context.there()) context = parent.context.WithSpan(context.span);
  context.sampled = parent.sampled && options_.traces.parent_decides
                        ? *parent.sampled
                        : IsSampled(context, options_.traces.sample);
  in.trace->Begin(context, parent.context.span);
}

// The wall clock is that of the first input, while it goes as fast: spans of one record fit.
void Tracer::At(Now now) {
  clock_ = now.boot;
  const Nanos wall = now.wall.time_since_epoch() - now.boot.time_since_epoch();
  const Nanos apart = wall - wall_;
  if (apart > kClocksMayDiffer || -apart > kClocksMayDiffer) wall_ = wall;
}

bool Tracer::Keeps(const InFlight& in) const {
  const RecordTrace* const trace = in.trace.get();
  if (trace == nullptr || !trace->open()) return false;
  return trace->kept() || trace->Busy(clock_) >= options_.traces.slow;
}

void Tracer::OnWritten(const WriteBatch& batch, const std::vector<WriteOutcome>& outcomes) {
  if (!on()) return;
  const bool kafka = options_.finality == Finality::kTransaction;
  Span span{.context = NewTrace(), .name = "transaction", .kind = SpanKind::kClient};
  span.start = span.end = Unix(clock_);
  std::int64_t written = 0;
  bool answered = false;
  for (std::size_t i = 0; i < batch.records.size(); ++i) {
    const InFlight& in = *batch.records[i];
    const WriteResult result = outcomes[i].result;
    written += EffectIsWritten(result) ? 1 : 0;
    answered = answered || result != WriteResult::kNotWritten;
    if (in.trace == nullptr || !in.trace->open()) continue;
    in.trace->OnTransaction(span.context);
    if (const auto failed = ResultName(result); !failed.empty()) {
      // What was not written is at no fault: all of a transaction are not, when its database goes.
      in.trace->Fail(outcomes[i].shown.empty() ? std::string(failed) : outcomes[i].shown,
                     result != WriteResult::kNotWritten);
    }
    if (!Keeps(in) || span.links.size() == kMostLinks) continue;
    span.links.push_back(in.trace->OfNow());
    span.start = std::min(span.start, Unix(in.trace->steps().back().from));
  }
  if (span.links.empty()) return;
  const auto records = static_cast<std::int64_t>(batch.records.size());
  span.attributes = {
      {kafka ? "messaging.system" : "db.system.name", options_.output_system},
      {kafka ? "messaging.batch.message_count" : "db.operation.batch.size", records},
      {"fencepost.pipeline", options_.pipeline},
      {"fencepost.written", written},
  };
  if (!answered) span.error = "nothing was written";
  observer_->OnSpans({std::move(span)});
}

void Tracer::End(InFlight& in, std::string_view result, std::string_view error) {
  if (in.trace == nullptr || !in.trace->open()) return;
  if (Keeps(in)) {
    std::vector<Span> spans{SpanOf(in, result, error)};
    AddSteps(in, spans);
    auto& traced = in.assignment->traced;
    const bool committed = result != "failed" && result != "given_back";
    if (options_.finality != Finality::kTransaction && committed && !in.assignment->gone &&
        traced.size() < Assignment::kMostTraced) {
      traced.emplace_back(in.record.offset, in.trace->context());
    }
    observer_->OnSpans(std::move(spans));
  }
  in.trace->End();
}

Span Tracer::SpanOf(const InFlight& in, std::string_view result, std::string_view error) const {
  const RecordTrace& trace = *in.trace;
  Span span{.context = trace.context(),
            .parent = trace.parent(),
            .name = "process " + in.where->topic,
            .kind = SpanKind::kConsumer};
  span.start = Unix(trace.steps().empty() ? clock_ : trace.steps().front().from);
  span.end = Unix(clock_);
  span.attributes = {
      {"messaging.system", "kafka"},
      {"messaging.operation.name", "process"},
      {"messaging.operation.type", "process"},
      {"messaging.destination.name", in.where->topic},
      {"messaging.destination.partition.id", std::to_string(in.where->partition)},
      {"messaging.kafka.offset", in.record.offset},
      {"messaging.consumer.group.name", options_.group},
      {"fencepost.pipeline", options_.pipeline},
      {"fencepost.result", std::string(result)},
      {"fencepost.attempts", static_cast<std::int64_t>(in.attempts)},
  };
  const auto add = [&span](std::string_view name, SpanValue value) {
    span.attributes.emplace_back(name, std::move(value));
  };
  if (!in.identity.id.empty()) add("fencepost.record_id", in.identity.id);
  // As text: it may be beyond what a number of OTLP holds.
  if (const auto token = TokenOf(in).value(); token != 0) {
    add("fencepost.token", std::to_string(token));
  }
  if (trace.steps_left_out() > 0) {
    add("fencepost.steps_left_out", static_cast<std::int64_t>(trace.steps_left_out()));
  }
  if (trace.events_left_out() > 0) {
    add("fencepost.events_left_out", static_cast<std::int64_t>(trace.events_left_out()));
  }
  for (const RecordTrace::Event& event : trace.events()) {
    span.events.push_back(
        {.at = Unix(event.at), .name = event.name, .attributes = {{"fencepost.text", event.text}}});
  }
  span.error = error;
  if (result == "dead_lettered" && in.letter != nullptr) {
    span.error = ClassAndText(in.letter->error_class, in.letter->shown);
    add("error.type", in.letter->error_class);
  }
  return span;
}

void Tracer::AddSteps(const InFlight& in, std::vector<Span>& spans) const {
  const RecordTrace& trace = *in.trace;
  for (const RecordTrace::Step& step : trace.steps()) {
    const std::string_view name = SpanName(step.stage);
    if (name.empty()) continue;
    Span& span = spans.emplace_back(Span{.context = trace.Of(step),
                                         .parent = trace.context().span,
                                         .name = std::string(name),
                                         .kind = SpanKind::kClient,
                                         .start = Unix(step.from),
                                         .end = Unix(std::min(step.to, clock_))});
    if (const auto* const mark = trace.MarkOf(step)) {
      span.error = mark->error;
      if (mark->transaction.there()) span.links.push_back(mark->transaction);
    }
    Describe(step.stage, span);
  }
}

// What it is of, by its stage.
void Tracer::Describe(Stage stage, Span& span) const {
  const auto add = [&span](std::string_view name, const std::string& value) {
    span.attributes.emplace_back(name, value);
  };
  switch (stage) {
    case Stage::kLocking:
      return add("db.system.name", "redis");
    case Stage::kLookup:
      return add("db.system.name", options_.output_system);
    case Stage::kHandling:
      span.name += " " + options_.handler_kind;
      if (options_.handler_kind != "http") span.kind = SpanKind::kInternal;
      if (!span.error.empty()) add("error.type", span.error.substr(0, span.error.find(':')));
      return;
    case Stage::kWriting:
      span.kind = SpanKind::kInternal;  // a part of its transaction
      return add("fencepost.output", options_.output_system);
    default:
      span.kind = SpanKind::kProducer;
      add("messaging.system", "kafka");
      add("messaging.operation.name", "send");
      add("messaging.operation.type", "send");
      return add("messaging.destination.name", options_.dead_letter_topic);
  }
}

void Tracer::OnCommitted(Assignment& partition, Offset next, Instant sent) {
  if (partition.traced.empty()) return;
  std::vector<Span> spans;
  std::erase_if(partition.traced, [&](const auto& record) {
    const auto& [offset, context] = record;
    if (offset >= next) return false;
    Span& span = spans.emplace_back(
        Span{.context = context.WithSpan(DerivedId(context.span, RecordTrace::kCommitNumber)),
             .parent = context.span,
             .name = "commit " + partition.where.topic,
             .kind = SpanKind::kClient,
             .start = Unix(sent),
             .end = Unix(clock_)});
    span.attributes = {
        {"messaging.system", "kafka"},
        {"messaging.operation.name", "commit"},
        {"messaging.operation.type", "settle"},
        {"messaging.destination.name", partition.where.topic},
        {"messaging.destination.partition.id", std::to_string(partition.where.partition)},
        {"messaging.kafka.offset", next},
        {"messaging.consumer.group.name", options_.group},
    };
    return true;
  });
  if (!spans.empty()) observer_->OnSpans(std::move(spans));
}

}  // namespace fencepost::consumer
