#include "consumer/cli/explain/explain_facts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/cli/dlq/content_difference.h"
#include "consumer/cli/dlq/dlq_topic.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/decode/registry/registry_decoder.h"
#include "consumer/outputs/rows/batch_rows.h"
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
constexpr std::size_t kMostLetters = 5;

bool Away(const Error& kafka) { return kafka.code == "kafka_unreachable"; }

Error WrongQuestion(std::string what, std::string hint) {
  return {.code = "bad_arguments", .what = std::move(what), .where = "", .hint = std::move(hint)};
}

// What an output takes from a record.
std::vector<consumer::Column> ColumnsOf(const consumer::OutputOptions& output) {
  return std::visit(
      [](const auto& kind) -> std::vector<consumer::Column> {
        std::vector<consumer::Column> columns;
        if constexpr (requires { kind.columns; }) columns = kind.columns;
        if constexpr (requires { kind.args; }) {
          for (std::size_t i = 0; i < kind.args.size(); ++i) {
            columns.push_back({fmt::format("${}", i + 1), kind.args[i]});
          }
        }
        return columns;
      },
      output);
}

// Why the columns refuse the record, as far as no database is needed to tell. Of a tombstone
// on_null_value decides, of a handler's answer the handler.
std::string WhyNoRow(const PipelineOptions& options, const consumer::Record& record,
                     const consumer::TopicPartition& where, const std::string& id) {
  if (options.handler.any() || !record.value) return "";
  consumer::BatchRows rows(ColumnsOf(options.output), "");
  std::vector<consumer::WriteOutcome> outcomes(1);
  (void)rows.Fill({{.record = &record, .where = &where, .record_id = id}}, outcomes);
  return outcomes.front().detail;
}

class Gatherer {
 public:
  explicit Gatherer(const PipelineOptions& options) : options_(options) {
    facts_.pipeline = options.name;
    facts_.group = options.kafka.group;
    facts_.output = OutputName(options.output);
    facts_.finality = FinalityOf(options.output);
    facts_.start_from = options.kafka.start_from;
    facts_.on_id_conflict = options.on_id_conflict;
    facts_.on_bad_record = options.on_bad_record;
    facts_.position_ids = options.identity.ByPosition();
    facts_.ledger_keep = options.ledger_keep;
    facts_.remember_done = options.lock.lock.remember_done;
    facts_.block = LockBlock(options);
    if (options.dead_letter) facts_.dead_letter_topic = options.dead_letter->topic;
    facts_.now = locking::ReadClocks().wall;
  }

  tl::expected<Facts, Error> ByPosition(const Position& position) {
    facts_.position = position;
    if (auto asked = AskKafka(); !asked) return tl::unexpected(asked.error());
    AskById();
    CompareWithRow();
    return std::move(facts_);
  }

  tl::expected<Facts, Error> ById(const std::string& id) {
    facts_.id = id;
    AskById();
    FindPosition();
    if (facts_.position) {
      if (auto asked = AskKafka(); !asked) return tl::unexpected(asked.error());
    }
    CompareWithRow();
    return std::move(facts_);
  }

 private:
  // Error: there is no such partition.
  tl::expected<void, Error> AskKafka();
  void AskForRecord(TopicReader& reader);
  void FailKafka(const Error& error);
  void Identify(const TopicRecord& record, const std::string& cluster);
  void AskById();
  void AskNodes();
  void AskLedger();
  void AskLetters();
  void FindPosition();
  void CompareWithRow();

  const PipelineOptions& options_;
  Facts facts_;
  std::unique_ptr<TopicReader> reader_;
  std::optional<TopicRecord> record_;
};

void Gatherer::FailKafka(const Error& error) {
  if (!facts_.range) facts_.range = tl::unexpected(error);
  if (!facts_.committed) facts_.committed = tl::unexpected(error);
  if (!facts_.record) facts_.record = tl::unexpected(error);
}

tl::expected<void, Error> Gatherer::AskKafka() {
  const Position& position = *facts_.position;
  // Asked by id, the dead letters came first: brokers that were away are not waited for again.
  if (facts_.letters && !*facts_.letters && Away(facts_.letters->error())) {
    FailKafka(facts_.letters->error());
    return {};
  }
  auto reader = TopicReader::Make(options_.kafka);
  if (!reader) {
    FailKafka(reader.error());
    return {};
  }
  reader_ = std::move(*reader);
  const auto ranges = reader_->Ranges(position.where.topic, kPartLimit);
  if (!ranges) {
    FailKafka(ranges.error());
    return {};
  }
  const auto mine = std::find_if(ranges->begin(), ranges->end(),
                                 [&](const auto& range) { return range.where == position.where; });
  if (mine == ranges->end()) {
    return tl::unexpected(WrongQuestion(
        fmt::format("topic {} has no partition {}", position.where.topic, position.where.partition),
        fmt::format("it has {}, counted from 0", ranges->size())));
  }
  facts_.range = *mine;
  facts_.committed = reader_->Committed(options_.kafka.group, position.where, kPartLimit);
  AskForRecord(*reader_);
  return {};
}

void Gatherer::AskForRecord(TopicReader& reader) {
  const Position& position = *facts_.position;
  const auto found = reader.ReadOne(position.where, position.offset, kPartLimit);
  if (!found) {
    facts_.record = tl::unexpected(found.error());
    return;
  }
  std::string cluster;
  if (facts_.position_ids) {
    const auto asked = reader.ClusterId(kPartLimit);
    if (!asked) {
      facts_.record = tl::unexpected(asked.error());
      return;
    }
    cluster = *asked;
  }
  if (*found) return Identify(**found, cluster);
  facts_.record = std::optional<RecordFacts>();
  if (facts_.position_ids && facts_.id.empty()) {
    facts_.id = consumer::StoredId(cluster + "/" + position.Text());
  }
}

void Gatherer::Identify(const TopicRecord& found, const std::string& cluster) {
  const consumer::Record& record = found.record;
  RecordFacts known{.headers = record.headers.size()};
  if (record.timestamp) known.timestamp = locking::WallTime(*record.timestamp);
  if (record.key) known.key = std::string(*record.key);
  if (record.value) known.value_bytes = record.value->size();
  facts_.record = std::optional<RecordFacts>(std::move(known));
  consumer::Identifier identifier(options_.identity, cluster);
  consumer::Identity identity;
  consumer::Record decoded = record;
  if (const auto decoder = consumer::MakeRecordDecoder(options_.kafka.decode)) {
    if (const auto done = consumer::DecodeNow(*decoder, decoded, kRegistryLimit); !done) {
      facts_.no_id = done.error();
      return;
    }
  }
  const auto done = identifier.Identify(decoded, found.where, identity);
  if (!done) {
    facts_.no_id = done.error();
  } else if (facts_.id.empty() || facts_.id == identity.id) {
    facts_.id = identity.id;
    facts_.crc = identity.crc;
    facts_.no_row = WhyNoRow(options_, decoded, found.where, identity.id);
    record_ = found;
  }
}

void Gatherer::CompareWithRow() {
  if (!facts_.row || !*facts_.row || !**facts_.row || !record_) return;
  const consumer::LedgerEntry& row = ***facts_.row;
  if (!row.crc || !locking::IsOtherContent(*row.crc, *facts_.crc)) return;
  facts_.difference = DifferenceFromSource(*reader_, row.source, record_->record, kPartLimit);
}

void Gatherer::AskById() {
  if (!facts_.id.empty()) {
    AskNodes();
    AskLedger();
  }
  AskLetters();
}

void Gatherer::AskNodes() {
  StoreView view({options_.lock.redis, options_.lock.lock}, locking::StoreCreation::kNever);
  facts_.lock = consumer::LockName(options_.name, consumer::LockedId(facts_.id, facts_.block));
  view.Connect(kNodesLimit);
  facts_.nodes = view.Look({facts_.lock}, kNodesLimit).front();
}

void Gatherer::AskLedger() {
  const auto ledger = LedgerView::Of(options_);
  if (ledger == nullptr) return;
  auto rows = ledger->Lookup({facts_.id}, kPartLimit);
  if (rows) {
    facts_.row = std::move(rows->front());
  } else {
    facts_.row = tl::unexpected(rows.error());
  }
}

void Gatherer::AskLetters() {
  if (!options_.dead_letter) return;
  if (facts_.range && !*facts_.range && Away(facts_.range->error())) {
    facts_.letters = tl::unexpected(facts_.range->error());
    return;
  }
  auto topic = LetterTopic::Open(options_, kPartLimit);
  if (!topic) {
    facts_.letters = tl::unexpected(topic.error());
    return;
  }
  std::vector<LetterFacts> found;
  const auto end = BootClock::now() + kLettersLimit;
  const auto scanned = topic->Scan(
      [&](const TopicRecord&, const tl::expected<StoredLetter, std::string>& letter) {
        facts_.letters_partly = BootClock::now() >= end;
        if (!letter || letter->pipeline != options_.name) return !facts_.letters_partly;
        const bool here = facts_.position && letter->origin == *facts_.position;
        if (here || (!facts_.id.empty() && letter->record_id == facts_.id)) {
          found.push_back({letter->at(), letter->origin, letter->error_class, letter->error,
                           letter->failed_at});
          // The newest count.
          if (found.size() > kMostLetters) found.erase(found.begin());
        }
        return !facts_.letters_partly;
      },
      kPartLimit);
  if (!scanned && found.empty()) {
    facts_.letters = tl::unexpected(scanned.error());
    return;
  }
  if (!scanned) facts_.letters_partly = true;
  facts_.letters = std::move(found);
}

void Gatherer::FindPosition() {
  const auto& topics = options_.kafka.topics;
  const auto take = [&](const std::optional<Position>& position, PositionFrom from) {
    if (facts_.position || !position) return;
    if (std::find(topics.begin(), topics.end(), position->where.topic) == topics.end()) return;
    facts_.position = position;
    facts_.position_from = from;
  };
  if (facts_.position_ids) take(ParsePosition(facts_.id), PositionFrom::kId);
  if (facts_.row && *facts_.row && **facts_.row) {
    take(ParsePosition((**facts_.row)->source), PositionFrom::kLedgerRow);
  }
  if (facts_.letters && *facts_.letters && !(*facts_.letters)->empty()) {
    take((*facts_.letters)->back().origin, PositionFrom::kDeadLetter);
  }
}

}  // namespace

bool Facts::NothingReached() const {
  if (range && *range) return false;
  if (letters && *letters) return false;
  if (row && *row) return false;
  return std::none_of(nodes.begin(), nodes.end(),
                      [](const NodeFacts& n) { return n.state != NodeState::kUnreachable; });
}

tl::expected<Facts, Error> Gather(const PipelineOptions& options, const Question& question) {
  Gatherer gatherer(options);
  if (!question.position) return gatherer.ById(question.id);
  const std::string& topic = question.position->where.topic;
  const auto& topics = options.kafka.topics;
  if (std::find(topics.begin(), topics.end(), topic) == topics.end()) {
    const bool dead = options.dead_letter && options.dead_letter->topic == topic;
    return tl::unexpected(
        WrongQuestion(fmt::format("pipeline {} does not read topic {}", options.name, topic),
                      dead ? "it is its dead letter topic: fencepost dlq show"
                           : fmt::format("it reads {}", fmt::join(topics, ", "))));
  }
  return gatherer.ByPosition(*question.position);
}

}  // namespace fencepost::cli
