#include "consumer/kafka/output/transactional_output_impl.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/topic_reader.h"
#include "consumer/kafka/source/offset_committer.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using locking::BootClock;
using std::chrono::milliseconds;
using Kind = TransactionStep::Kind;

constexpr milliseconds kCallTurn{
    200};  // of one call that can be resumed: how soon Interrupt is seen
constexpr milliseconds kAnswerLimit{5000};  // then the caller hears that the brokers do not answer
constexpr int kSmallestBatch = 1024;

}  // namespace

bool KafkaOutput::GiveUp(Clock::time_point since) const {
  return interrupted_ || Clock::now() >= since + kAnswerLimit;
}

tl::expected<void, OutputError> KafkaOutput::Make() {
  auto made = TransactionalProducer::Make(TransactionSettings(kafka_, options_, id_, batches_));
  if (!made) return tl::unexpected(OutputError{.error = made.error(), .fatal = true});
  live_.Drop();
  live_.producer = std::move(*made);
  std::string wrong;
  const auto topic_of = [&](const std::string& name) {
    rdkafka::Topic topic = live_.producer->TopicOf(name);
    if (topic == nullptr) wrong = fmt::format("'{}' is not the name of a topic", name);
    return topic;
  };
  for (const std::string& name : records_.topics()) live_.topics.push_back(topic_of(name));
  if (!dead_letter_topic_.empty()) live_.dead_letters = topic_of(dead_letter_topic_);
  if (wrong.empty()) return {};
  return tl::unexpected(OutputError{.error = {"bad_config", wrong, "", ""}, .fatal = true});
}

tl::expected<void, OutputError> KafkaOutput::Prepare() {
  if (fatal_) return tl::unexpected(*fatal_);
  if (live_.ready) return {};
  if (live_.producer == nullptr) {
    if (auto made = Make(); !made) {
      fatal_ = made.error();
      return made;
    }
  }
  const auto since = Clock::now();
  TransactionStep step;  // once: librdkafka refuses a second start
  if (!live_.started) step = live_.producer->Init(kCallTurn);
  while (step.kind == Kind::kAgain && !GiveUp(since)) step = live_.producer->Init(kCallTurn);
  if (step.kind == Kind::kAgain)
    return tl::unexpected(OutputError{.error = ErrorOfInit(Who(), step)});
  if (!step.done()) {
    const OutputError error = OutputError{.error = ErrorOfInit(Who(), step)};
    live_.Drop();
    return tl::unexpected(error);
  }
  live_.started = true;
  const char* const where =
      options_.records.empty() ? "output.kafka.topic" : "output.kafka.records";
  for (const rdkafka::Topic& topic : live_.topics) {
    if (auto found = CheckTopic(topic.get(), where); !found) return found;
  }
  if (source_) {
    const auto same = SameCluster(*source_, kafka_, kAnswerLimit);
    if (!same) return tl::unexpected(OutputError{.error = same.error()});
    if (*same) {
      fatal_ = OutputError{.error = ErrorOfLoop("output.kafka"), .fatal = true};
      return tl::unexpected(*fatal_);
    }
    source_.reset();
  }
  if (live_.dead_letters != nullptr) {
    if (auto found = CheckTopic(live_.dead_letters.get(), "dead_letter.topic"); !found) {
      return found;
    }
  }
  if (encoder_ != nullptr) {
    if (auto prepared = encoder_->Prepare(); !prepared) {
      return tl::unexpected(OutputError{.error = prepared.error()});
    }
  }
  live_.ready = true;
  return {};
}

tl::expected<void, OutputError> KafkaOutput::CheckTopic(rd_kafka_topic_t* topic,
                                                        const char* where) {
  auto error = RD_KAFKA_RESP_ERR_NO_ERROR;
  const auto since = Clock::now();
  do {
    error = live_.producer->Ask(topic, kCallTurn * 5);
  } while (error == RD_KAFKA_RESP_ERR__TIMED_OUT && !GiveUp(since));
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return tl::unexpected(
      OutputError{.error = ErrorOfTopic(rd_kafka_topic_name(topic), where, error)});
}

KafkaOutput::Outcomes KafkaOutput::Write(const WriteRequest& request) {
  if (fatal_) return tl::unexpected(*fatal_);
  if (pending_ == Pending::kCommit) return EndByCommit(request);
  if (pending_ == Pending::kUnknown) return ResolveByOffsets(request);
  if (pending_ == Pending::kAbort) {
    if (auto ended = Abort(true); !ended) return tl::unexpected(ended.error());
  }
  bad_.clear();
  largest_ = 0;
  if (auto prepared = Prepare(); !prepared) return tl::unexpected(prepared.error());
  if (request.items.empty() && request.offsets.empty())
    return Outcomes(std::vector<WriteOutcome>(1));
  LeaveOut(request);
  std::shared_ptr<const GroupMetadata> metadata;
  if (!request.offsets.empty()) {
    metadata = group_metadata_(request.epoch);
    if (metadata == nullptr) return NotWritten(request, "the assignment is over");
  }
  began_ = BootClock::now();
  const TransactionStep begun = live_.producer->Begin();
  if (begun.kind == Kind::kFatal) return tl::unexpected(ProducerLost(begun));
  if (!begun.done()) {
    live_.Drop();  // nothing is open: a new producer starts clean
    return tl::unexpected(Unavailable(begun));
  }
  Trouble trouble = ProduceAll(request);
  const bool offsets = metadata != nullptr && !Planted("offsets_outside_the_transaction");
  if (!trouble && offsets) trouble = SendOffsets(request, *metadata);
  return trouble ? EndByAbort(request, trouble) : EndByCommit(request);
}

// Behind a held dead letter its partition is left out; where that is all, with a pause.
void KafkaOutput::LeaveOut(const WriteRequest& request) {
  const auto now = Clock::now();
  held_.Begin(request.epoch);
  stop_at_.clear();
  left_out_.assign(request.items.size(), false);
  wrote_.assign(request.items.size(), false);
  for (std::size_t i = 0; i < request.items.size(); ++i) {
    const WriteItem& item = request.items[i];
    const auto from = held_.StopAt(*item.where, now);
    if (!from || item.record->offset < *from) continue;
    left_out_[i] = true;
    stop_at_[*item.where] = *from;
  }
  if (stop_at_.empty() || std::find(left_out_.begin(), left_out_.end(), false) != left_out_.end()) {
    return;
  }
  while (!interrupted_ && Clock::now() < now + kCallTurn) live_.producer->Poll(kCallTurn / 10);
}

// When one record is bad the transaction is lost, but the rest is still looked at: so all that are
// bad for themselves are told at once.
Trouble KafkaOutput::ProduceAll(const WriteRequest& request) {
  for (std::uint32_t i = 0; i < request.items.size(); ++i) {
    if (left_out_[i]) continue;
    const Trouble trouble = ProduceItem(request.items[i], i);
    if (trouble && trouble.of != Trouble::Of::kRecords) return trouble;
    if (i % 1024 == 0) live_.producer->Poll(milliseconds(0));
  }
  if (bad_.empty() || Planted("transaction_without_its_bad_record")) return {};
  return Trouble{Trouble::Of::kRecords};
}

Trouble KafkaOutput::ProduceItem(const WriteItem& item, std::uint32_t index) {
  if (item.dead_letter != nullptr) {
    FENCEPOST_CHECK(live_.dead_letters != nullptr, "a dead letter without a topic for it");
    const DeadLetterRecord letter(dead_letter_topic_, *item.dead_letter, pipeline_,
                                  held_.FormOf(item));
    return ProduceOne(live_.dead_letters.get(), letter.outgoing(), index);
  }
  records_.Begin(item);
  for (;;) {
    const auto record = records_.Next();
    if (!record) {
      bad_.emplace(index, Refusal{.text = record.error().shown,
                                  .reason = DeadLetterReason::kBadRecord,
                                  .detail = record.error().detail});
      return Trouble{Trouble::Of::kRecords};
    }
    if (*record == nullptr) return {};
    wrote_[index] = true;
    rd_kafka_topic_t* const topic = live_.topics[records_.topic()].get();
    if (const Trouble trouble = ProduceOne(topic, **record, index)) return trouble;
  }
}

Trouble KafkaOutput::ProduceOne(rd_kafka_topic_t* topic, const OutgoingRecord& record,
                                std::uint32_t index) {
  if (!bad_.empty()) return {};  // it will be aborted anyway
  largest_ = std::max(largest_, record.value ? record.value->size() : 0);
  for (;;) {
    const auto error = live_.producer->Produce(topic, record, index);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
    if (OfARecord(error)) {
      bad_.emplace(index, Refusal{rd_kafka_err2str(error), error});
      return Trouble{Trouble::Of::kRecords};
    }
    const bool full = error == RD_KAFKA_RESP_ERR__QUEUE_FULL;
    if (!full || interrupted_ || BootClock::now() > began_ + options_.transaction_timeout) {
      return Trouble{Trouble::Of::kBrokers, {Kind::kAbort, error, rd_kafka_err2str(error)}};
    }
    live_.producer->Poll(milliseconds(10));
  }
}

Offset KafkaOutput::NextOf(const SourceOffset& one) const {
  const auto stop = stop_at_.find(one.where);
  return stop == stop_at_.end() ? one.next : std::min(one.next, stop->second);
}

Trouble KafkaOutput::SendOffsets(const WriteRequest& request, const GroupMetadata& metadata) {
  const rdkafka::PartitionList list = rdkafka::MakeList(request.offsets.size());
  for (const SourceOffset& one : request.offsets) {
    AddOffset(list.get(), {one.where, NextOf(one), one.failed}, metadata.samples.get());
  }
  const auto since = Clock::now();
  // This call cannot be resumed: its limit ends the transaction.
  auto step = live_.producer->SendOffsets(list.get(), metadata.held.get(), kAnswerLimit);
  while (step.kind == Kind::kAgain && !GiveUp(since)) {
    live_.producer->Poll(milliseconds(10));
    step = live_.producer->SendOffsets(list.get(), metadata.held.get(), kAnswerLimit);
  }
  if (step.done()) return {};
  if (step.kind == Kind::kFatal) return Trouble{Trouble::Of::kProducer, step};
  if (IsMetadataTooLarge(step.code) && metadata.samples != nullptr) metadata.samples->Shorten();
  const bool rejected = ClassifyCommit(step.code) == CommitResult::kRejected;
  return Trouble{rejected ? Trouble::Of::kGroup : Trouble::Of::kBrokers, step};
}

// Once the commit is asked for, its outcome is the brokers' to tell: until they do, this call says
// so and the next one goes on asking.
KafkaOutput::Outcomes KafkaOutput::EndByCommit(const WriteRequest& request) {
  pending_ = Pending::kCommit;
  const auto since = Clock::now();
  for (;;) {
    const TransactionStep step = live_.producer->Commit(kCallTurn);
    switch (step.kind) {
      case Kind::kDone:
        pending_ = Pending::kNothing;
        return Committed(request);
      case Kind::kAgain:
        if (Planted("unanswered_commit_counts")) return Committed(request);
        if (GiveUp(since))
          return tl::unexpected(OutputError{.error = ErrorOfSilence(Who(), "commit")});
        break;
      case Kind::kAbort:
        return EndByAbort(request, Trouble{Trouble::Of::kBrokers, step});
      case Kind::kFailed:
      case Kind::kFatal:
        return tl::unexpected(ProducerLost(step));
    }
  }
}

// A new producer's start has ended what the lost one left open, and a transaction moves the group's
// offsets or nothing. Whoever else has moved them took the partition over. Where it holds none, its
// records are written again.
KafkaOutput::Outcomes KafkaOutput::ResolveByOffsets(const WriteRequest& request) {
  if (auto prepared = Prepare(); !prepared) return tl::unexpected(prepared.error());
  if (request.offsets.empty() && !Planted("unknown_commit_counts")) {
    pending_ = Pending::kNothing;
    return NotWritten(request, "nothing tells what became of the transaction");
  }
  const auto reader = TopicReader::Make(kafka_);
  if (!reader) return tl::unexpected(OutputError{.error = reader.error()});
  std::vector<TopicPartition> partitions;
  for (const SourceOffset& one : request.offsets) partitions.push_back(one.where);
  const auto committed = (*reader)->Committed(kafka_.group, partitions, kCallTurn * 5);
  if (!committed) return tl::unexpected(OutputError{.error = committed.error()});
  bool moved = true;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    moved = moved && (*committed)[i].next.value_or(-1) >= NextOf(request.offsets[i]);
  }
  pending_ = Pending::kNothing;
  return moved ? Committed(request) : NotWritten(request, "the transaction was aborted");
}

KafkaOutput::Outcomes KafkaOutput::EndByAbort(const WriteRequest& request, const Trouble& trouble) {
  if (trouble.of == Trouble::Of::kProducer) return tl::unexpected(ProducerLost(trouble.step));
  const bool failed_already = trouble.step.kind == Kind::kAbort;
  if (auto ended = Abort(failed_already); !ended) return tl::unexpected(ended.error());
  if (auto again = NameTheRefused()) return tl::unexpected(*again);
  if (const auto dead = RefusedDeadLetter(request)) return tl::unexpected(*dead);
  if (!bad_.empty()) return NotWritten(request, "another record of the transaction was refused");
  if (trouble.of == Trouble::Of::kGroup) return NotWritten(request, trouble.step.text);
  return tl::unexpected(Unavailable(trouble.step));
}

// What is in flight is waited for first: librdkafka can end in a fatal error otherwise, and what
// was refused is known only then. A transaction that has failed already sends nothing more: then
// the wait ends when nothing moves.
tl::expected<void, OutputError> KafkaOutput::Abort(bool failed_already) {
  pending_ = Pending::kAbort;
  const auto since = Clock::now();
  for (int before = live_.producer->Unsent();
       !live_.producer->Flush(kCallTurn) && !GiveUp(since);) {
    const int now = live_.producer->Unsent();
    if (failed_already && now >= before) break;
    before = now;
  }
  for (;;) {
    const TransactionStep step = live_.producer->Abort(kCallTurn);
    if (step.kind == Kind::kFatal) return tl::unexpected(ProducerLost(step));
    if (step.kind == Kind::kAgain) {
      if (GiveUp(since + kAnswerLimit))
        return tl::unexpected(OutputError{.error = ErrorOfSilence(Who(), "abort")});
      continue;
    }
    pending_ = Pending::kNothing;
    if (!step.done()) live_.Drop();  // the next producer aborts it as it starts
    return {};
  }
}

// What was refused was perhaps a batch of several, and perhaps it is smaller compressed as far as
// it goes: nobody is named before each was sent alone.
std::optional<OutputError> KafkaOutput::NameTheRefused() {
  if (live_.producer == nullptr) return std::nullopt;
  std::map<std::uint32_t, Refusal> refused;
  std::string topic;
  const bool several = records_.topics().size() > 1;
  for (const auto& failure : live_.producer->failures()) {
    if (!OfARecord(failure.code)) continue;
    refused.emplace(
        failure.item,
        Refusal{several ? failure.topic + ": " + failure.why : failure.why, failure.code});
    if (topic.empty()) topic = failure.topic;
  }
  if (!refused.empty() && !batches_.one_by_one) {
    batches_.one_by_one = true;
    live_.Drop();
    return ErrorOfBatch(refused.begin()->second.text, topic);
  }
  bad_.merge(refused);
  if (batches_.one_by_one && !bad_.empty()) {
    batches_.one_by_one = false;
    live_.Drop();
  }
  return std::nullopt;
}

// A dead letter has nowhere else to go. It is sent in another form, and at last it is held back;
// either way the rest of the request goes on at once.
std::optional<OutputError> KafkaOutput::RefusedDeadLetter(const WriteRequest& request) {
  std::optional<OutputError> error;
  for (const auto& [index, refusal] : bad_) {
    const WriteItem& item = request.items[index];
    if (item.dead_letter == nullptr) continue;
    const Blame blame = BlameOf(refusal.code);
    if (held_.TryNextForm(item, blame)) {
      batches_.one_by_one |= blame == Blame::kItsSize;  // it is known to be large
      if (!error) error = ErrorOfBatch(refusal.text, dead_letter_topic_);
      continue;
    }
    const DeadLetterRecord letter(dead_letter_topic_, *item.dead_letter, pipeline_);
    const std::string need = NeedOf(letter, blame, refusal.text);
    held_.Hold(item, Clock::now(), need);
    error = ErrorOfLetter(SourceText(*item.where, item.record->offset), refusal.text,
                          dead_letter_topic_, need);
  }
  return error;
}

KafkaOutput::Outcomes KafkaOutput::Committed(const WriteRequest& request) {
  held_.Committed();
  if (batches_.one_by_one) {
    batches_.one_by_one = false;
    // Together they were too large, or one of them is just below the limit.
    if (largest_ < static_cast<std::size_t>(batches_.bytes) / 2) {
      batches_.bytes = std::max(batches_.bytes / 2, kSmallestBatch);
    }
    live_.Drop();
  }
  std::vector<WriteOutcome> outcomes(OutcomesOf(request));
  for (std::size_t i = 0; i < request.items.size(); ++i) {
    if (left_out_[i]) {
      outcomes[i].result = WriteResult::kNotWritten;
    } else if (request.items[i].dead_letter != nullptr) {
      held_.Published(request.items[i]);
    } else if (!wrote_[i]) {
      outcomes[i] = {.result = WriteResult::kNoOutput, .took_rows = false};
    }
  }
  return outcomes;
}

KafkaOutput::Outcomes KafkaOutput::NotWritten(const WriteRequest& request, const std::string& why) {
  const WriteOutcome not_written{.result = WriteResult::kNotWritten, .detail = why, .shown = why};
  std::vector<WriteOutcome> outcomes(OutcomesOf(request), not_written);
  for (const auto& [index, refusal] : bad_) {
    outcomes[index] = {
        .result = WriteResult::kBadRecord,
        .detail = refusal.detail.empty() ? refusal.text : refusal.detail,
        .reason = refusal.reason,
        .shown = refusal.text,
    };
  }
  return outcomes;
}

// The transaction is aborted, for no fault of the records or the group.
OutputError KafkaOutput::Unavailable(const TransactionStep& step) const {
  auto code = step.code;
  std::string topic = options_.records.empty() ? options_.topic : "output.kafka.records";
  if (live_.producer != nullptr) {
    for (const auto& failure : live_.producer->failures()) {
      if (Purged(failure.code)) continue;
      code = failure.code;
      topic = failure.topic;
      break;
    }
  }
  const std::string why = code == step.code ? step.text : rd_kafka_err2str(code);
  return OutputError{.error = {"kafka_output", fmt::format("the transaction was aborted: {}", why),
                               topic, std::string(WhatToDoAbout(code))}};
}

// The next call makes a new producer. But a successor under this worker's name is not fenced in
// turn: one of the two has to be given another name.
OutputError KafkaOutput::ProducerLost(const TransactionStep& step) {
  const bool outlived = BootClock::now() - began_ > options_.transaction_timeout;
  OutputError error = ErrorOfTheEnd(Who(), step, outlived);
  pending_ = pending_ == Pending::kCommit ? Pending::kUnknown : Pending::kNothing;
  live_.Drop();
  if (error.fatal) fatal_ = error;
  return error;
}

std::unique_ptr<Output> MakeKafkaOutput(const KafkaOptions& kafka,
                                        const KafkaOutputOptions& options,
                                        std::string dead_letter_topic, std::string pipeline,
                                        std::string worker, GroupMetadataOf group_metadata,
                                        const JqMakers& jq, std::optional<KafkaOptions> source) {
  return std::make_unique<KafkaOutput>(kafka, options, std::move(dead_letter_topic),
                                       std::move(pipeline), std::move(worker),
                                       std::move(group_metadata), jq, std::move(source));
}

}  // namespace fencepost::consumer
