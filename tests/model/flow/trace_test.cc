// The traces of records: which are kept, and what their spans say. Virtual time.
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/trace/trace_context.h"
#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr const char* kProducer = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr const char* kUnsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

FlowOptions Traced(double sample) {
  FlowOptions options = FlowBench::Handling(Order::kNone);
  options.group = "shop";
  options.handler_kind = "http";
  options.output_system = "postgresql";
  options.traces.endpoint = "http://otel:4318/v1/traces";
  options.traces.sample = sample;
  return options;
}
FlowOptions All() { return Traced(1); }
FlowOptions None() { return Traced(0); }
FlowOptions OfItself() {
  FlowOptions options = Traced(0);
  options.traces.parent_decides = false;
  return options;
}
FlowOptions Off() {
  FlowOptions options = Traced(1);
  options.traces.endpoint.clear();
  return options;
}

template <FlowOptions (*options)()>
class TracedWorker : public WorkerWith<options> {
 protected:
  using WorkerWith<options>::worker;

  void Process(const std::string& id) {
    worker.Deliver(0, {id});
    worker.HandleAll();
    worker.WriteAll();
  }
  // "process t, handle http, …" in the order in which they began; those of one record.
  std::string Names(std::string_view trace) const {
    std::multimap<Nanos, std::string> names;
    for (const Span& span : worker.told.spans) {
      if (TraceIdText(span.context) == trace) names.emplace(span.start, span.name);
    }
    std::string text;
    for (const auto& [start, name] : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }
  std::vector<Span> Named(std::string_view name) const {
    std::vector<Span> found;
    for (const Span& span : worker.told.spans) {
      if (span.name == name) found.push_back(span);
    }
    return found;
  }
  static std::map<std::string, std::string> Attributes(const Span& span) {
    std::map<std::string, std::string> all;
    for (const auto& [name, value] : span.attributes) {
      const auto* const text = std::get_if<std::string>(&value);
      all.emplace(name, text != nullptr ? *text : std::to_string(std::get<std::int64_t>(value)));
    }
    return all;
  }
  static std::vector<std::string> Events(const Span& span) {
    std::vector<std::string> names;
    for (const SpanEvent& event : span.events) names.push_back(event.name);
    return names;
  }
};

using AllTraces = TracedWorker<All>;
using NoSample = TracedWorker<None>;
using OwnSampler = TracedWorker<OfItself>;
using WithoutTraces = TracedWorker<Off>;

TEST_F(AllTraces, ARecordContinuesTheTraceOfItsProducerThroughHandlerTransactionAndCommit) {
  worker.traceparent = kProducer;
  Process("a");
  worker.Wait(Millis(1000));
  worker.Confirm();
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  EXPECT_EQ(Names(trace), "process t, lock, look up, handle http, write, commit t");
  const auto process = Named("process t");
  ASSERT_THAT(process, SizeIs(1));
  EXPECT_EQ(SpanIdText(process[0].parent), "00f067aa0ba902b7");
  EXPECT_EQ(process[0].kind, SpanKind::kConsumer);
  EXPECT_EQ(process[0].error, "");
  EXPECT_THAT(
      Attributes(process[0]),
      AllOf(Contains(Pair("messaging.system", "kafka")),
            Contains(Pair("messaging.destination.name", "t")),
            Contains(Pair("messaging.destination.partition.id", "0")),
            Contains(Pair("messaging.kafka.offset", "0")),
            Contains(Pair("messaging.consumer.group.name", "shop")),
            Contains(Pair("fencepost.record_id", "a")), Contains(Pair("fencepost.result", "done")),
            Contains(Pair("fencepost.attempts", "1"))));
  std::set<std::uint64_t> ids;
  for (const Span& span : worker.told.spans) {
    EXPECT_TRUE(ids.insert(span.context.span).second) << "a span id twice";
    EXPECT_LE(span.start, span.end) << span.name;
    if (span.name == "transaction" || span.name == "process t") continue;
    EXPECT_EQ(span.parent, process[0].context.span) << span.name;
  }
}

TEST_F(AllTraces, ATransactionIsOneSpanThatIsLinkedToItsRecordsAndTheyToIt) {
  worker.Deliver(0, {"a", "b", "c"});
  worker.HandleAll();
  ASSERT_EQ(worker.Writes(), "a") << "the others wait for its transaction";
  worker.Write();
  ASSERT_EQ(worker.Writes(), "b c");
  worker.Write();
  const auto transactions = Named("transaction");
  const auto writes = Named("write");
  ASSERT_THAT(transactions, SizeIs(2));
  ASSERT_THAT(writes, SizeIs(3));
  EXPECT_THAT(transactions[0].links, ElementsAre(writes[0].context));
  EXPECT_THAT(transactions[1].links, ElementsAre(writes[1].context, writes[2].context));
  EXPECT_THAT(writes[0].links, ElementsAre(transactions[0].context));
  EXPECT_THAT(writes[1].links, ElementsAre(transactions[1].context));
  EXPECT_THAT(writes[2].links, ElementsAre(transactions[1].context));
  EXPECT_THAT(Attributes(transactions[1]), AllOf(Contains(Pair("db.system.name", "postgresql")),
                                                 Contains(Pair("db.operation.batch.size", "2")),
                                                 Contains(Pair("fencepost.written", "2"))));
}

TEST_F(AllTraces, TheHandlerIsCalledInTheSpanOfItsCall) {
  worker.traceparent = kProducer;
  worker.Deliver(0, {"a"});
  ASSERT_THAT(worker.calls, SizeIs(1));
  const TraceContext first = worker.calls[0].trace;
  EXPECT_EQ(TraceIdText(first), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_TRUE(first.sampled);
  worker.Fail("a", {.error_class = "503", .text = "busy", .retry_after = {}});
  worker.Wait(Millis(60'000));
  ASSERT_THAT(worker.calls, SizeIs(1));
  const TraceContext second = worker.calls[0].trace;
  EXPECT_NE(first.span, second.span);
  worker.HandleAll();
  worker.WriteAll();
  const auto handled = Named("handle http");
  ASSERT_THAT(handled, SizeIs(2));
  EXPECT_EQ(handled[0].context, first);
  EXPECT_EQ(handled[0].error, "503");
  EXPECT_EQ(handled[1].context, second);
  EXPECT_EQ(handled[1].error, "");
}

TEST_F(AllTraces, WhatIsWrittenCarriesTheContextOfItsRecord) {
  worker.traceparent = kProducer;
  worker.Deliver(0, {"a"});
  worker.HandleAll();
  ASSERT_THAT(worker.writes, SizeIs(1));
  const TraceContext carried = worker.writes[0]->request.items[0].trace;
  worker.WriteAll();
  EXPECT_EQ(Named("process t")[0].context, carried);
}

TEST_F(AllTraces, EachRecordWithoutAParentHasATraceOfItsOwn) {
  worker.Deliver(0, {"a", "b"});
  worker.HandleAll();
  worker.WriteAll();
  const auto process = Named("process t");
  ASSERT_THAT(process, SizeIs(2));
  EXPECT_NE(TraceIdText(process[0].context), TraceIdText(process[1].context));
  EXPECT_EQ(process[0].parent, 0U);
}

TEST_F(NoSample, AGoodRecordLeavesNoSpan) {
  Process("a");
  worker.traceparent = kUnsampled;
  Process("b");
  EXPECT_THAT(worker.told.spans, IsEmpty());
}

TEST_F(NoSample, ARecordIsKeptAsItsProducerSays) {
  worker.traceparent = kProducer;
  Process("a");
  EXPECT_THAT(Named("process t"), SizeIs(1));
}

TEST_F(OwnSampler, ARecordIsKeptByTheRatioWhateverItsProducerSays) {
  worker.traceparent = kProducer;
  Process("a");
  EXPECT_THAT(worker.told.spans, IsEmpty());
}

TEST_F(NoSample, ADeadLetterIsKeptAndCarriesItsContextOn) {
  worker.traceparent = kUnsampled;
  worker.Deliver(0, {"a"});
  worker.Fail("a", {.error_class = "422",
                    .text = "no such account 4711",
                    .shown = "no such account",
                    .retry = false,
                    .retry_after = {}});
  ASSERT_EQ(worker.Letters(), "a:422");
  const std::string carried = worker.letters[0].traceparent;
  worker.Acknowledge();
  const auto process = Named("process t");
  ASSERT_THAT(process, SizeIs(1));
  ASSERT_THAT(Named("dead letter"), SizeIs(1));
  EXPECT_EQ(TraceparentText(Named("dead letter")[0].context), carried);
  EXPECT_THAT(Attributes(process[0]), AllOf(Contains(Pair("fencepost.result", "dead_lettered")),
                                            Contains(Pair("error.type", "422"))));
  EXPECT_EQ(process[0].error, "422: no such account") << "without anything of the record";
  EXPECT_THAT(Events(process[0]), ElementsAre("handler_failed", "refused", "dead_lettered"));
}

TEST_F(NoSample, ASlowRecordIsKept) {
  worker.Deliver(0, {"slow", "quick"});
  worker.Handle("quick");
  worker.WriteAll();
  EXPECT_THAT(worker.told.spans, IsEmpty());
  worker.Wait(Millis(1000));
  worker.Handle("slow");
  worker.WriteAll();
  const auto process = Named("process t");
  ASSERT_THAT(process, SizeIs(1));
  EXPECT_THAT(Attributes(process[0]), Contains(Pair("fencepost.record_id", "slow")));
  EXPECT_THAT(Named("handle http")[0].end - Named("handle http")[0].start,
              ::testing::Ge(Nanos(Millis(1000))));
}

TEST_F(NoSample, AContendedRecordIsKeptWithWhatHappened) {
  world.Steal(LockName("p", "a"));
  worker.Deliver(0, {"a"});
  worker.Wait(world.lock.ttl * 2);
  worker.HandleAll();
  worker.WriteAll();
  const auto process = Named("process t");
  ASSERT_THAT(process, SizeIs(1));
  EXPECT_THAT(Events(process[0]), Contains("contended"));
}

TEST_F(NoSample, ALostLeaseIsAnEventOfItsRecord) {
  worker.Deliver(0, {"a"});
  LoseLease("a");
  worker.Wait(world.lock.ttl * 2);
  for (int i = 0; i < 3; ++i) {
    worker.HandleAll();
    worker.WriteAll();
  }
  const auto process = Named("process t");
  ASSERT_THAT(process, SizeIs(1));
  EXPECT_THAT(Events(process[0]), Contains("lease_lost"));
}

// What waits for other records is not slow: a backlog alone keeps no trace.
TEST_F(NoSample, ARecordThatWaitsForOthersIsNotSlow) {
  worker.Tune({.concurrency = 1, .retry = {}});
  worker.Deliver(0, {"a", "b"});
  ASSERT_EQ(worker.Calls(), "a");
  worker.Wait(Millis(900));
  worker.Handle("a");
  worker.WriteAll();
  ASSERT_EQ(worker.Calls(), "b");
  worker.Wait(Millis(900));
  worker.Handle("b");
  worker.WriteAll();
  EXPECT_THAT(worker.told.spans, IsEmpty());
}

TEST_F(NoSample, ADuplicateOfALeaseThatWasLeftBehindIsNotContended) {
  Process("a");
  worker.Deliver(0, {"a"});
  worker.Wait(world.lock.ttl);
  EXPECT_EQ(worker.told.skips_by_ledger, 1);
  EXPECT_THAT(worker.told.spans, IsEmpty());
}

TEST_F(AllTraces, WhatIsGivenBackIsToldAsSuch) {
  worker.Deliver(0, {"a", "b"});
  worker.Revoke(0);
  worker.Wait(Millis(2000));
  const auto process = Named("process t");
  ASSERT_THAT(process, SizeIs(2));
  for (const Span& span : process) {
    EXPECT_THAT(Attributes(span), Contains(Pair("fencepost.result", "given_back")));
  }
}

TEST_F(NoSample, ARefusedWriteFailsInItsSpanAndNotItsTransactions) {
  worker.Deliver(0, {"a"});
  worker.HandleAll();
  worker.Answer({{.result = WriteResult::kBadRecord,
                  .detail = "no such account 4711",
                  .reason = DeadLetterReason::kOutput,
                  .shown = "no such account"}});
  worker.Acknowledge();
  ASSERT_THAT(Named("write"), SizeIs(1));
  EXPECT_EQ(Named("write")[0].error, "no such account");
  ASSERT_THAT(Named("transaction"), SizeIs(1));
  EXPECT_EQ(Named("transaction")[0].error, "");
  EXPECT_THAT(Named("transaction")[0].links, ElementsAre(Named("write")[0].context));
}

TEST_F(AllTraces, AnAbortedTransactionIsAnErrorOfItAndOfItsRecords) {
  worker.Deliver(0, {"a"});
  worker.HandleAll();
  worker.Abort();
  worker.HandleAll();
  worker.WriteAll();
  const auto transactions = Named("transaction");
  ASSERT_THAT(transactions, SizeIs(2));
  EXPECT_EQ(transactions[0].error, "nothing was written");
  EXPECT_EQ(transactions[1].error, "");
  ASSERT_THAT(Named("write"), SizeIs(2));
  EXPECT_EQ(Named("write")[0].error, "not_written");
  EXPECT_EQ(Named("write")[1].error, "");
}

TEST_F(NoSample, AnAbortedTransactionKeepsNoTrace) {
  Process("a");
  worker.Deliver(0, {"b"});
  worker.HandleAll();
  worker.Abort();
  worker.HandleAll();
  worker.WriteAll();
  EXPECT_THAT(worker.told.spans, IsEmpty());
}

TEST_F(WithoutTraces, NothingIsNotedOfARecord) {
  worker.traceparent = kProducer;
  worker.Deliver(0, {"a"});
  ASSERT_THAT(worker.calls, SizeIs(1));
  EXPECT_FALSE(worker.calls[0].trace.there());
  worker.HandleAll();
  EXPECT_FALSE(worker.writes[0]->request.items[0].trace.there());
  worker.WriteAll();
  EXPECT_THAT(worker.told.spans, IsEmpty());
  worker.flow.ForEachRecord([](const InFlight& in) { EXPECT_EQ(in.trace, nullptr); });
}

TEST(RecordTrace, KeepsTheBeginningAndTheEndOfMoreStepsThanItHolds) {
  Instant clock(std::chrono::seconds(1));
  RecordTrace trace(&clock);
  trace.Begin({.trace_high = 1, .trace_low = 2, .span = 3, .sampled = false}, 0);
  constexpr std::size_t kSteps = 5 * RecordTrace::kMostSteps;
  for (std::size_t i = 0; i < kSteps; ++i) {
    trace.OnStage(Stage::kHandling);
    clock += Millis(1);
  }
  ASSERT_LE(trace.steps().size(), RecordTrace::kMostSteps);
  EXPECT_EQ(trace.steps_left_out(), kSteps - trace.steps().size());
  EXPECT_EQ(trace.steps().front().number, 0U);
  EXPECT_EQ(trace.steps().back().number, kSteps - 1);
  for (std::size_t i = 0; i + 1 < trace.steps().size(); ++i) {
    EXPECT_EQ(trace.steps()[i].to - trace.steps()[i].from, Millis(1)) << i;
  }
}

TEST(RecordTrace, KeepsTheFirstAndTheLastOfMoreEventsThanItHolds) {
  const Instant clock(std::chrono::seconds(1));
  RecordTrace trace(&clock);
  trace.Begin({.trace_high = 1, .trace_low = 2, .span = 3, .sampled = false}, 0);
  for (std::size_t i = 0; i < 100; ++i) trace.Tell(std::to_string(i), "");
  ASSERT_EQ(trace.events().size(), RecordTrace::kMostEvents);
  EXPECT_EQ(trace.events().front().name, "0");
  EXPECT_EQ(trace.events().back().name, "99");
  EXPECT_EQ(trace.events_left_out(), 100 - RecordTrace::kMostEvents);
}

}  // namespace
}  // namespace fencepost::consumer
