#include "consumer/cli/dlq/dlq_replay.h"

#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/cli/shared/progress.h"
#include "consumer/kafka/client/producer.h"
#include "consumer/record/dead_letter.h"

namespace fencepost::cli {

using consumer::HeaderView;
using consumer::OutgoingRecord;
using consumer::PipelineOptions;
using consumer::Producer;
using std::chrono::seconds;

namespace {

constexpr std::size_t kBatch = 500;           // ids a look into the ledger
constexpr std::size_t kMaxFailuresTold = 20;  // then only counted
constexpr seconds kReadLimit{30};
constexpr seconds kLookupLimit{30};
constexpr seconds kFlushLimit{120};

class Replayer {
 public:
  Replayer(const PipelineOptions& options, const LetterRequest& request, std::size_t total)
      : request_(request),
        rules_(RulesOf(options, request.as_new_id)),
        ledger_(LedgerView::Of(options)),
        progress_("replayed", total) {}

  tl::expected<void, Error> Connect(const PipelineOptions& options) {
    auto settings = consumer::ProducerSettings(options.kafka);
    settings["topic.metadata.propagation.max.ms"] = "5000";  // a missing topic is said soon
    auto producer = Producer::Make(options.kafka, settings);
    if (!producer) return tl::unexpected(producer.error());
    producer_ = std::move(*producer);
    return {};
  }

  // Takes letters until a batch is full. Error: nothing of this batch was published.
  tl::expected<void, Error> Take(const StoredLetter& letter) {
    batch_.push_back(letter);
    return batch_.size() < kBatch ? tl::expected<void, Error>() : EndBatch();
  }

  tl::expected<void, Error> EndBatch() {
    LedgerView::Rows rows(batch_.size());
    if (ledger_ != nullptr) {
      std::vector<std::string> ids;
      for (const StoredLetter& letter : batch_) ids.push_back(letter.record_id);
      auto found = ledger_->Lookup(ids, kLookupLimit);
      if (!found) return tl::unexpected(Blind(found.error()));
      rows = std::move(*found);
    }
    for (std::size_t i = 0; i < batch_.size(); ++i) TakeUp(batch_[i], rows[i]);
    batch_.clear();
    return {};
  }

  // Until every record was acknowledged or refused.
  void Finish() {
    if (producer_ != nullptr) {
      const auto flushed = producer_->Flush(kFlushLimit);
      if (!flushed && counts_.replayed + counts_.failed < sent_) {
        Tell("", fmt::format("{} were not acknowledged: {}",
                             sent_ - counts_.replayed - counts_.failed, flushed.error().Line()));
        counts_.failed = sent_ - counts_.replayed;
      }
    }
    progress_.Show(counts_.replayed + counts_.failed + counts_.refused + counts_.repeated);
  }

  [[nodiscard]] const ReplayCounts& counts() const { return counts_; }

 private:
  static Error Blind(Error error) {
    error.what = "the ledger cannot be asked, and without it nothing is replayed: " + error.what;
    error.hint = "run it again when the database answers";
    return error;
  }

  void TakeUp(const StoredLetter& letter, const std::optional<consumer::LedgerEntry>& row) {
    const ReplayDecision decision = Decide(letter, rules_, row);
    if (!decision.replay) {
      ++counts_.refused;
      counts_.done += decision.done ? 1 : 0;
      Line(fmt::format("refused       {}: {}", letter.at().Text(), decision.why));
    } else if (!rules_.as_new_id && !ids_.insert(letter.record_id).second) {
      ++counts_.repeated;
      Line(fmt::format("left out      {}: an earlier dead letter of id {} is in this replay",
                       letter.at().Text(), Printable(letter.record_id)));
    } else if (request_.execute) {
      if (!decision.why.empty()) {
        Line(fmt::format("note          {}: {}", letter.at().Text(), decision.why));
      }
      Send(letter, decision);
    } else {
      ++counts_.replayed;
      Line(fmt::format("would replay  {} to {}, id {}{}", letter.at().Text(),
                       letter.origin.where.topic, IdText(letter, decision),
                       decision.why.empty() ? "" : " (" + decision.why + ")"));
    }
  }

  [[nodiscard]] std::string IdText(const StoredLetter& letter,
                                   const ReplayDecision& decision) const {
    if (!decision.header_id.empty()) return Printable(decision.header_id, 600);
    if (rules_.position_ids) return "of its new position";
    return letter.record_id.empty() ? "of its content" : Printable(letter.record_id, 600);
  }

  void Send(const StoredLetter& letter, const ReplayDecision& decision) {
    const consumer::Record& record = letter.stored.record;
    OutgoingRecord outgoing{.topic = letter.origin.where.topic,
                            .partition = std::nullopt,
                            .key = record.key,
                            .value = record.value,
                            .headers = OwnHeaders(record),
                            .timestamp = record.timestamp};
    if (!decision.header_id.empty()) {
      outgoing.headers.push_back(
          HeaderView{consumer::dead_letter_header::kRecordId, decision.header_id});
    }
    ++sent_;
    const std::string at = letter.at().Text();
    const auto sent = producer_->Send(outgoing, [this, at](const auto& delivered) {
      if (delivered) {
        ++counts_.replayed;
      } else {
        Failed(at, delivered.error());
      }
    });
    if (!sent) Failed(at, sent.error());
    producer_->Poll(consumer::Millis(0));
    progress_.Show(counts_.replayed + counts_.failed + counts_.refused + counts_.repeated);
  }

  void Failed(const std::string& at, const Error& error) {
    if (++counts_.failed <= kMaxFailuresTold) Tell(at, error.Line());
  }

  void Tell(const std::string& at, const std::string& line) {
    progress_.Clear();
    PrintError(at.empty() ? line : fmt::format("{} was not replayed: {}", at, line));
  }

  void Line(const std::string& line) {
    progress_.Clear();
    fmt::print("{}\n", line);
  }

  const LetterRequest& request_;
  const ReplayRules rules_;
  const std::unique_ptr<LedgerView> ledger_;
  Progress progress_;
  ReplayCounts counts_;
  std::size_t sent_ = 0;
  std::set<std::string> ids_;
  std::vector<StoredLetter> batch_;
  std::unique_ptr<Producer> producer_;  // first to go: its deliveries touch the rest
};

// How many there are, for the bar.
tl::expected<std::size_t, Error> Count(LetterTopic& topic, const LetterRequest& request) {
  std::size_t count = 0;
  const auto seen = topic.Visit(
      request.filter, [&](const StoredLetter&) { return ++count != request.limit; }, kReadLimit);
  if (!seen) return tl::unexpected(seen.error());
  return count;
}

}  // namespace

tl::expected<ReplayCounts, Error> Replay(const PipelineOptions& options, LetterTopic& topic,
                                         const LetterRequest& request) {
  std::size_t total = 0;
  if (request.execute) {
    const auto counted = Count(topic, request);
    if (!counted) return tl::unexpected(counted.error());
    total = *counted;
  }
  Replayer replayer(options, request, total);
  if (request.execute) {
    if (auto connected = replayer.Connect(options); !connected) {
      return tl::unexpected(connected.error());
    }
  }
  std::size_t taken = 0;
  tl::expected<void, Error> outcome;
  const auto seen = topic.Visit(
      request.filter,
      [&](const StoredLetter& letter) {
        outcome = replayer.Take(letter);
        return outcome && ++taken != request.limit;
      },
      kReadLimit);
  if (outcome && seen) outcome = replayer.EndBatch();
  replayer.Finish();
  if (outcome && !seen) outcome = tl::unexpected(seen.error());
  if (!outcome) {
    Error error = outcome.error();
    if (replayer.counts().replayed > 0 && request.execute) {
      error.what += fmt::format(" ({} were replayed before)", replayer.counts().replayed);
    }
    return tl::unexpected(std::move(error));
  }
  return replayer.counts();
}

}  // namespace fencepost::cli
