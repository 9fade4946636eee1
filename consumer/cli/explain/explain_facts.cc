#include "consumer/cli/explain/explain_facts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/cli/dlq/content_difference.h"
#include "consumer/cli/dlq/dlq_topic.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/cli/shared/pure_handler.h"
#include "consumer/decode/registry/registry_decoder.h"
#include "consumer/fleet/ask_port.h"
#include "consumer/flow/ports/retry.h"
#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/log_identity/log_sample.h"
#include "consumer/kafka/output/output_records.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/outputs/rows/item_values.h"
#include "consumer/pipeline/read_topics.h"
#include "consumer/pipeline/record_filter.h"
#include "consumer/pipeline/required_parts.h"
#include "consumer/record/identity.h"
#include "consumer/record/position_id.h"

namespace fencepost::cli {

using consumer::Millis;
using consumer::PipelineOptions;
using consumer::TopicReader;
using consumer::TopicRecord;
using locking::BootClock;

namespace {

constexpr Millis kPartLimit{4000};
constexpr Millis kNodesLimit{2000};
constexpr Millis kRegistryLimit{8000};  // an unknown schema is asked for some seconds
constexpr Millis kLettersLimit{8000};
constexpr Millis kSearchLimit{8000};
constexpr Millis kWorkerLimit{1000};
constexpr std::size_t kMostLetters = 5;

bool Away(const Error& kafka) { return kafka.code == "kafka_unreachable"; }

Error WrongQuestion(std::string what, std::string hint) {
  return {.code = "bad_arguments", .what = std::move(what), .where = "", .hint = std::move(hint)};
}

bool Reads(const PipelineOptions& options, const std::string& topic) {
  return consumer::ReadTopics(options.kafka.topics).Has(topic);
}

// What an output takes from a record, without the rules of its rows.
consumer::EffectShapes TakenBy(const consumer::OutputOptions& output) {
  return std::visit(
      [](const auto& kind) -> consumer::EffectShapes {
        std::vector<consumer::Effect> effects;
        if constexpr (requires { kind.effects; }) {
          effects = consumer::EffectsOf(kind);
        } else if constexpr (requires { kind.columns; }) {
          effects = {{.table = "", .columns = kind.columns}};
        }
        for (consumer::Effect& effect : effects) effect.rules = {};
        return consumer::ShapesOf(std::move(effects)).value_or(consumer::EffectShapes());
      },
      output);
}

// Why the columns refuse the record, as far as no database is needed to tell. Of a null value
// on_null_value decides; of what http or exec answers, only what they do not make is known.
std::string WhyNoRow(const PipelineOptions& options, const consumer::WriteItem& item) {
  const auto* const kafka = std::get_if<consumer::KafkaOutputOptions>(&options.output);
  const bool encoded =
      kafka != nullptr && (kafka->encode.key.Needed() || kafka->encode.value.Needed());
  if (kafka != nullptr && !options.handler.outside() && !encoded) {
    consumer::OutputRecords records(*kafka, "", nullptr,
                                    consumer::DecodeOptions::IsWireFormat(options.kafka.decode.key),
                                    consumer::OutputJq());
    records.Begin(item);
    for (;;) {
      const auto record = records.Next();
      if (!record) return record.error().detail;
      if (*record == nullptr) return "";
    }
  }
  if (options.handler.outside() || encoded) {
    consumer::Evaluator evaluator;
    return MissingPart(consumer::RequiredPartsOf(options.output, options.handler),
                       {.record = item.record, .where = item.where, .origin = item.origin},
                       evaluator);
  }
  for (std::size_t i = 0; i < consumer::CountValues(item); ++i) {
    if (!consumer::ValueOf(item, i)) return "";
  }
  consumer::BatchRows rows(TakenBy(options.output), "", consumer::MakeRecordFilter);
  std::vector<consumer::WriteOutcome> outcomes(1);
  (void)rows.Fill({item}, outcomes);
  return outcomes.front().detail;
}

bool SkipsNull(const consumer::OutputOptions& output) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.effects; }) {
          return std::ranges::all_of(EffectsOf(kind), [](const consumer::Effect& effect) {
            return effect.rules.on_null_value == consumer::OnNull::kSkip;
          });
        } else {
          return false;
        }
      },
      output);
}

std::vector<consumer::FailedRecord> FailedOf(const consumer::CommittedOffset& committed) {
  return consumer::ParseMetadata(committed.metadata, committed.next.value_or(-1)).failed;
}

class Gatherer {
 public:
  explicit Gatherer(const PipelineOptions& options) : options_(options) {
    facts_.options = options;
    if (auto filter = consumer::MakeRecordFilter(options.filter)) filter_ = std::move(*filter);
    facts_.now = locking::ReadClocks().wall;
  }

  // Error: there is no such partition.
  tl::expected<Facts, Error> About(const Question& question) {
    facts_.position = question.position;
    facts_.file = question.file;
    facts_.id = question.id;
    if (!facts_.position) {
      AskById();
      FindPosition();
    }
    if (facts_.position) {
      if (auto asked = AskKafka(*facts_.position); !asked) return tl::unexpected(asked.error());
    }
    if (question.position) AskById();
    CompareWithRow();
    CompareWithTable();
    AskWorker();
    return std::move(facts_);
  }

 private:
  // Brokers that were away once are not waited for again.
  [[nodiscard]] bool OneCluster() const {
    return !options_.dead_letter || options_.dead_letter->cluster.brokers.empty();
  }
  [[nodiscard]] bool LettersAreAway() const {
    return OneCluster() && facts_.letters && !*facts_.letters && Away(facts_.letters->error());
  }
  void FailKafka(const Error& error) {
    facts_.range = tl::unexpected(error);
    facts_.committed = tl::unexpected(error);
    facts_.record = tl::unexpected(error);
  }

  tl::expected<void, Error> AskKafka(const Position& position) {
    // Asked by id, the dead letters came first.
    if (LettersAreAway()) {
      FailKafka(facts_.letters->error());
      return {};
    }
    auto reader = TopicReader::Make(options_.kafka);
    auto ranges = reader.and_then(
        [&](const auto& made) { return made->Ranges(position.where.topic, kPartLimit); });
    if (!ranges) {
      FailKafka(ranges.error());
      return {};
    }
    reader_ = std::move(*reader);
    const auto mine = std::ranges::find(*ranges, position.where, &consumer::PartitionRange::where);
    if (mine == ranges->end()) {
      return tl::unexpected(
          WrongQuestion(fmt::format("topic {} has no partition {}", position.where.topic,
                                    position.where.partition),
                        fmt::format("it has {}, counted from 0", ranges->size())));
    }
    facts_.range = *mine;
    AskGroup(position);
    facts_.record = AskForRecord(position);
    return {};
  }

  void AskGroup(const Position& position) {
    const auto committed = reader_->Committed(options_.kafka.group, {position.where}, kPartLimit);
    facts_.committed = committed.map([](const auto& all) { return all.front().next; });
    if (!committed) return;
    Millis last{-1};
    for (const consumer::FailedRecord& one : FailedOf(committed->front())) {
      if (one.why != consumer::kRefusedForOthers && one.last >= last) {
        facts_.unavailable = one.unavailable;
        last = one.last;
      }
      if (one.offset == position.offset) {
        facts_.failing = one;
        continue;
      }
      if (one.why != consumer::kRefusedForOthers) ++facts_.others_fail;
      if (one.offset == facts_.committed->value()) facts_.first_fails = one;
    }
  }

  Told<std::optional<TopicRecord>> AskForRecord(const Position& position) {
    auto found = reader_->ReadOne(position.where, position.offset, kPartLimit);
    if (!found) return found;
    std::string cluster;
    const bool marks = !WriteDecides(FinalityOf(options_.output), options_.identity);
    if (options_.identity.ByPosition() || marks) {
      const auto asked = reader_->ClusterId(kPartLimit);
      if (!asked) return tl::unexpected(asked.error());
      cluster = *asked;
      if (marks) facts_.cluster = consumer::TagOf(cluster);
      if (!*found && facts_.id.empty()) {
        facts_.id = consumer::StoredId(cluster + "/" + position.Text());
      }
    }
    if (*found) Identify(**found, cluster);
    return found;
  }

  // Decodes the record. Error: why it has no id.
  tl::expected<consumer::Identity, std::string> IdentityOf(TopicRecord& found,
                                                           const std::string& cluster) const {
    consumer::Identifier identifier(options_.identity, cluster);
    consumer::Identity identity;
    if (const auto decoder = consumer::MakeRecordDecoder(options_.kafka.decode)) {
      const auto done = consumer::DecodeNow(*decoder, found.record, kRegistryLimit);
      if (!done) return tl::unexpected(done.error());
    }
    if (filter_ != nullptr) {
      Filter(*filter_, options_.identity.accept_replay_ids, found.where, found.record);
    }
    const auto done = identifier.Identify(found.record, found.where, identity);
    if (!done) return tl::unexpected(done.error());
    return identity;
  }

  void Identify(TopicRecord found, const std::string& cluster) {
    auto identity = IdentityOf(found, cluster);
    if (found.record.filtered) facts_.filtered = filter_->WhyNot();
    if (!identity) {
      facts_.no_id = identity.error();
    } else if (facts_.id.empty() || facts_.id == identity->id) {
      facts_.id = identity->id;
      facts_.crc = identity->crc;
      decoded_ = std::move(found);
      identity_ = std::move(*identity);
      if (facts_.filtered.empty() && AskHandler()) facts_.no_row = WhyNoRow(options_, Item());
    }
  }

  // The record as an output would get it.
  [[nodiscard]] consumer::WriteItem Item() const {
    return {.record = &decoded_->record,
            .where = &decoded_->where,
            .origin = identity_.origin ? &*identity_.origin : nullptr,
            .record_id = identity_.id,
            .whole_id = identity_.whole,
            .values = values_ ? &*values_ : nullptr};
  }

  // False: it refuses the record.
  bool AskHandler() {
    const auto made = AskPureHandler(options_, {.record = decoded_->record,
                                                .where = decoded_->where,
                                                .record_id = identity_.id,
                                                .timeout = options_.processing.timeout});
    if (!made) {
      if (!options_.handler.any()) CountRows();
      return true;
    }
    if (*made) {
      values_ = **made;
      CountRows();
      return true;
    }
    const consumer::HandlerFailure& failure = made->error();
    if (failure.retry) return true;
    facts_.no_row = fmt::format("the handler ({}): {}", failure.error_class, failure.text);
    facts_.handler_refuses = failure.error_class != "bad_record";
    return false;
  }

  void CountRows() {
    const consumer::WriteItem item = Item();
    const std::size_t values = consumer::CountValues(item);
    bool null = values > 0 && SkipsNull(options_.output);
    for (std::size_t i = 0; i < values; ++i) null = null && !consumer::ValueOf(item, i);
    facts_.null_value = null;
    facts_.makes_rows = values > 0 && !null;
  }

  void CompareWithRow() {
    const auto* row = Found(facts_.row);
    if (row == nullptr || !row->crc || !facts_.crc) return;
    if (!locking::IsOtherContent(*row->crc, *facts_.crc)) return;
    facts_.difference =
        DifferenceFromSource(*reader_, row->source, Found(facts_.record)->record, kPartLimit);
  }

  void CompareWithTable() {
    const bool known = !options_.handler.any() || values_;
    if (!decoded_ || !known || Found(facts_.row) == nullptr) return;
    const auto newer = LedgerView::Of(options_)->HasNewer(Item(), kPartLimit);
    facts_.newer_row = newer.value_or(false);
  }

  void AskWorker() {
    const std::string at = consumer::FromHere(options_.observe.http);
    if (at.empty()) return;
    const auto ready =
        AskPort(options_.observe, PortUrl(options_.observe, at, "/ready"), kWorkerLimit);
    const std::string text = ready ? ready->body : ready.error();
    facts_.worker = fmt::format("{} {}", at, text.substr(0, text.find_last_not_of('\n') + 1));
  }

  void AskById() {
    if (!facts_.id.empty()) {
      AskNodes();
      AskLedger();
    }
    if (options_.dead_letter) facts_.letters = AskLetters();
  }

  void AskNodes() {
    StoreView view({options_.lock.redis, options_.lock.lock}, locking::StoreCreation::kNever);
    facts_.lock =
        consumer::LockName(options_.name, consumer::LockedId(facts_.id, LockBlock(options_)));
    view.Connect(kNodesLimit);
    facts_.nodes = view.Look({facts_.lock}, kNodesLimit).front();
  }

  void AskLedger() {
    const auto ledger = LedgerView::Of(options_);
    if (ledger == nullptr) return;
    facts_.row = ledger->Lookup({facts_.id}, kPartLimit).map([](const LedgerView::Rows& rows) {
      return rows.front();
    });
  }

  Told<std::vector<StoredLetter>> AskLetters() {
    if (OneCluster() && facts_.range && !*facts_.range && Away(facts_.range->error())) {
      return tl::unexpected(facts_.range->error());
    }
    auto topic = LetterTopic::Open(options_, kPartLimit);
    if (!topic) return tl::unexpected(topic.error());
    std::vector<StoredLetter> found;
    const auto end = BootClock::now() + kLettersLimit;
    const auto look = [&](const Met& met) {
      facts_.letters_partly = BootClock::now() >= end;
      if (!met.letter || met.letter->pipeline != options_.name) return !facts_.letters_partly;
      const bool here = facts_.position && met.letter->origin == *facts_.position;
      if (here || (!facts_.id.empty() && met.letter->record_id == facts_.id)) {
        found.push_back(*met.letter);
        // The newest count.
        if (found.size() > kMostLetters) found.erase(found.begin());
      }
      return !facts_.letters_partly;
    };
    const auto scanned = topic->Scan(look, kPartLimit);
    if (!scanned && found.empty()) return tl::unexpected(scanned.error());
    facts_.letters_partly = facts_.letters_partly || !scanned;
    return found;
  }

  void FindPosition() {
    const auto take = [&](const std::optional<Position>& position, PositionFrom from) {
      if (facts_.position || !position || !Reads(options_, position->where.topic)) return;
      facts_.position = position;
      facts_.position_from = from;
    };
    if (options_.identity.ByPosition()) take(ParsePosition(facts_.id), PositionFrom::kId);
    if (const auto* row = Found(facts_.row)) {
      take(ParsePosition(row->source), PositionFrom::kLedgerRow);
    }
    if (const auto* letters = Known(facts_.letters); letters != nullptr && !letters->empty()) {
      take(letters->back().origin, PositionFrom::kDeadLetter);
    }
    if (!facts_.position) take(FindInGroup(), PositionFrom::kGroup);
  }

  // Among those that fail, and the next one of each partition.
  std::optional<Position> FindInGroup() {
    if (LettersAreAway()) return std::nullopt;
    const auto end = BootClock::now() + kSearchLimit;
    auto reader = TopicReader::Make(options_.kafka);
    if (!reader) return std::nullopt;
    const auto admin = consumer::KafkaAdmin::Make(options_.kafka);
    if (!admin) return std::nullopt;
    const auto topics = (*admin)->Topics(options_.kafka.topics, kPartLimit);
    if (!topics) return std::nullopt;
    std::vector<consumer::TopicPartition> partitions;
    for (const auto& [topic, count] : *topics) {
      for (int p = 0; p < count; ++p) partitions.push_back({topic, p});
    }
    const auto committed = (*reader)->Committed(options_.kafka.group, partitions, kPartLimit);
    if (!committed) return std::nullopt;
    std::vector<Position> candidates;
    for (const consumer::CommittedOffset& one : *committed) {
      for (const auto& failed : FailedOf(one)) candidates.push_back({one.where, failed.offset});
    }
    for (const consumer::CommittedOffset& one : *committed) {
      if (one.next) candidates.push_back({one.where, *one.next});
    }
    for (const Position& candidate : candidates) {
      if (BootClock::now() >= end) break;
      auto found = (*reader)->ReadOne(candidate.where, candidate.offset, kPartLimit);
      if (!found || !*found) continue;
      const auto identity = IdentityOf(**found, "");
      if (identity && identity->id == facts_.id) return candidate;
    }
    return std::nullopt;
  }

  const PipelineOptions& options_;
  Facts facts_;
  std::unique_ptr<TopicReader> reader_;
  std::unique_ptr<consumer::RecordFilter> filter_;  // nullptr: none
  std::optional<TopicRecord> decoded_;              // the record, where it was read and has the id
  consumer::Identity identity_;                     // its
  std::optional<consumer::HandlerValues> values_;   // what a handler without effects makes of it
};

}  // namespace

bool Facts::NothingReached() const {
  return Known(range) == nullptr && Known(letters) == nullptr && Known(row) == nullptr &&
         std::ranges::all_of(nodes,
                             [](const NodeFacts& n) { return n.state == NodeState::kUnreachable; });
}

tl::expected<Facts, Error> Gather(const PipelineOptions& options, const Question& question) {
  if (question.position && !Reads(options, question.position->where.topic)) {
    const std::string& topic = question.position->where.topic;
    const bool dead = options.dead_letter && options.dead_letter->topic == topic;
    return tl::unexpected(
        WrongQuestion(fmt::format("pipeline {} does not read topic {}", options.name, topic),
                      dead ? "it is its dead letter topic: fencepost dlq show " + question.file
                           : fmt::format("it reads {}", fmt::join(options.kafka.topics, ", "))));
  }
  return Gatherer(options).About(question);
}

}  // namespace fencepost::cli
