#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "consumer/cli/dlq/dlq_commands.h"
#include "consumer/cli/dlq/dlq_decide.h"
#include "consumer/cli/dlq/newer_changes.h"
#include "consumer/cli/dlq/position_reuse.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/producer.h"
#include "consumer/record/dead_letter.h"

namespace fencepost::cli {

namespace header = consumer::dead_letter_header;

using consumer::HeaderView;
using consumer::OutgoingRecord;
using consumer::PipelineOptions;
using consumer::Producer;
using std::chrono::seconds;

namespace {

constexpr std::size_t kMaxFailuresTold = 20;  // then only counted
constexpr seconds kLookupLimit{30};
constexpr seconds kFlushLimit{120};

class Replayer {
 public:
  Replayer(const PipelineOptions& options, const LetterRequest& request)
      : options_(options),
        request_(request),
        ledger_(LedgerView::Of(options)),
        newer_(options, ledger_.get()) {}

  tl::expected<void, Error> Connect() {
    auto settings = consumer::ProducerSettings(options_.kafka);
    settings["topic.metadata.propagation.max.ms"] = "5000";  // a missing topic is said soon
    return Producer::Make(options_.kafka, settings).map([this](std::unique_ptr<Producer> made) {
      producer_ = std::move(made);
    });
  }

  // Error: the ledger cannot be asked; none of these was published.
  tl::expected<void, Error> Take(const std::vector<StoredLetter>& letters) {
    if (sent_ > 0) fmt::print(stderr, "{} sent, {} acknowledged\n", sent_, replayed_);
    LedgerView::Rows rows(letters.size());
    if (ledger_ != nullptr) {
      std::vector<std::string> ids;
      for (const StoredLetter& letter : letters) ids.push_back(letter.record_id);
      auto found = ledger_->Lookup(ids, kLookupLimit);
      if (!found) return tl::unexpected(Blind(found.error()));
      rows = std::move(*found);
    }
    const auto reused = FindReuse(options_, letters);
    if (!reused) return tl::unexpected(Blind(reused.error()));
    std::vector<std::string> newer(letters.size());
    if (!request_.over_newer) {
      auto found = newer_.Find(letters);
      if (!found) return tl::unexpected(Blind(found.error()));
      newer = std::move(*found);
    }
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const bool own = (*reused)[i].empty();
      TakeUp(letters[i], own ? rows[i] : std::nullopt, (*reused)[i], newer[i]);
    }
    return {};
  }

  // Until every record was acknowledged or refused.
  void Finish() {
    if (producer_ == nullptr) return;
    const auto flushed = producer_->Flush(kFlushLimit);
    if (flushed || replayed_ + failed_ == sent_) return;
    PrintError(fmt::format("{} were not acknowledged: {}", sent_ - replayed_ - failed_,
                           flushed.error().Line()));
    failed_ = sent_ - replayed_;
  }

  [[nodiscard]] std::size_t replayed() const { return replayed_; }
  // Of those that were refused, what has taken effect is no failure.
  [[nodiscard]] bool good() const { return refused_ + failed_ == done_; }

  void PrintTotals(const LettersSeen& seen) const {
    fmt::print("{} {}, {} refused", replayed_, request_.execute ? "replayed" : "would be replayed",
               refused_);
    if (failed_ > 0) fmt::print(", {} failed", failed_);
    if (repeated_ > 0) fmt::print(", {} left out", repeated_);
    fmt::print("{}\n", seen.LeftOut());
    if (!request_.execute) fmt::print("nothing was published: --execute does it\n");
    if (replayed_ == 0) return;
    fmt::print("the producer chooses the partition by the key: it may be another than before\n");
    if (ledger_ == nullptr) {
      fmt::print("this output has no ledger: nothing tells which ids took effect meanwhile\n");
    }
    if (options_.identity.accept_replay_ids) {
      fmt::print("an interrupted replay can be run again: every replay carries its id\n");
      return;
    }
    fmt::print(
        "an interrupted replay can be run again: {}what is still in flight may come twice "
        "(kafka.accept_replay_ids: true would tell by the id)\n",
        ledger_ != nullptr ? "what took effect meanwhile is refused; " : "");
  }

 private:
  static Error Blind(Error error) {
    error.what = "what took effect cannot be asked, and nothing is replayed blindly: " + error.what;
    error.hint = "run it again when Kafka and the database answer";
    return error;
  }

  void TakeUp(const StoredLetter& letter, const std::optional<consumer::LedgerEntry>& row,
              const std::string& reused, const std::string& newer) {
    ReplayDecision decision = Decide(letter, options_, request_.as_new_id, row);
    if (decision.replay && !reused.empty() && !request_.as_new_id) {
      decision = {.replay = false,
                  .why = fmt::format("its topic was made again: {}; --as-new-id replays it as a "
                                     "new record",
                                     reused)};
    }
    if (decision.replay && !newer.empty()) decision = {.replay = false, .why = newer};
    const std::string at = letter.at().Text();
    if (!decision.replay) {
      ++refused_;
      done_ += decision.done ? 1 : 0;
      fmt::print("refused       {}: {}\n", at, decision.why);
    } else if (!request_.as_new_id && !ids_.insert(letter.record_id).second) {
      ++repeated_;
      fmt::print("left out      {}: an earlier dead letter of id {} is in this replay\n", at,
                 Printable(letter.record_id));
    } else if (request_.execute) {
      if (!decision.why.empty()) fmt::print("note          {}: {}\n", at, decision.why);
      Send(letter, decision);
    } else {
      ++replayed_;
      fmt::print("would replay  {} to {}, id {}{}\n", at, letter.origin.where.topic,
                 IdText(letter, decision), decision.why.empty() ? "" : " (" + decision.why + ")");
    }
  }

  [[nodiscard]] std::string IdText(const StoredLetter& letter,
                                   const ReplayDecision& decision) const {
    if (!decision.header_id.empty()) return Printable(decision.header_id, 600);
    if (options_.identity.ByPosition()) return "of its new position";
    return letter.record_id.empty() ? "of its content" : Printable(letter.record_id, 600);
  }

  // Whether its topic takes the original's time. Where that is not known, its answer says so. A
  // time of 0 is none to librdkafka.
  bool TakesTime(const StoredLetter& letter) {
    const std::string& topic = letter.origin.where.topic;
    auto known = rules_.find(topic);
    if (known == rules_.end()) {
      const auto admin = consumer::KafkaAdmin::Make(options_.kafka);
      const auto asked =
          admin ? (*admin)->RulesOf(topic, kLookupLimit) : tl::unexpected(admin.error());
      known = rules_.emplace(topic, asked.value_or(consumer::TopicRules())).first;
    }
    const auto now = locking::ReadClocks().wall.time_since_epoch();
    if (!letter.timestamp) return true;
    return letter.timestamp->count() != 0 && known->second.Takes(*letter.timestamp, now);
  }

  void Send(const StoredLetter& letter, const ReplayDecision& decision) {
    const consumer::Record& record = letter.stored.record;
    const bool timed = TakesTime(letter);
    OutgoingRecord outgoing{.topic = letter.origin.where.topic,
                            .partition = std::nullopt,
                            .key = record.key,
                            .value = record.value,
                            .headers = OwnHeaders(record),
                            .timestamp = timed ? letter.timestamp : std::nullopt};
    // What fences and columns make of the original's place and time.
    const std::string partition = std::to_string(letter.origin.where.partition);
    const std::string offset = std::to_string(letter.origin.offset);
    const std::string millis =
        std::to_string(letter.timestamp.value_or(consumer::Millis(0)).count());
    if (!decision.header_id.empty()) {
      outgoing.headers.push_back(HeaderView{header::kRecordId, decision.header_id});
    }
    const bool origin = !decision.header_id.empty() && options_.identity.accept_replay_ids;
    if (origin) {
      outgoing.headers.push_back(HeaderView{header::kTopic, letter.origin.where.topic});
      outgoing.headers.push_back(HeaderView{header::kPartition, partition});
      outgoing.headers.push_back(HeaderView{header::kOffset, offset});
    }
    if (letter.timestamp && (origin || !timed)) {
      outgoing.headers.push_back(HeaderView{header::kTimestamp, millis});
    }
    if (!timed) {
      fmt::print("note          {}: {} does not take its time, which is in the header {}\n",
                 letter.at().Text(), letter.origin.where.topic, header::kTimestamp);
    }
    ++sent_;
    const auto acknowledged = [this, at = letter.at().Text()](const auto& outcome) {
      if (outcome) {
        ++replayed_;
      } else if (++failed_ <= kMaxFailuresTold) {
        PrintError(fmt::format("{} was not replayed: {}", at, outcome.error().Line()));
      }
    };
    const auto sent = producer_->Send(outgoing, acknowledged);
    if (!sent) acknowledged(sent);
    producer_->Poll(consumer::Millis(0));
  }

  const PipelineOptions& options_;
  const LetterRequest& request_;
  const std::unique_ptr<LedgerView> ledger_;
  NewerChanges newer_;
  std::size_t sent_ = 0;
  std::size_t replayed_ = 0;  // acknowledged; in a dry run: would be replayed
  std::size_t refused_ = 0;
  std::size_t done_ = 0;  // of those refused: it has taken effect
  std::size_t failed_ = 0;
  std::size_t repeated_ = 0;  // later letters of an id that is in this replay already
  std::set<std::string> ids_;
  std::map<std::string, consumer::TopicRules> rules_;  // by topic
  std::unique_ptr<Producer> producer_;                 // first to go: its deliveries touch the rest
};

}  // namespace

int Replay(const PipelineOptions& options, LetterTopic& topic, const LetterRequest& request) {
  Replayer replayer(options, request);
  if (request.execute) {
    if (const auto connected = replayer.Connect(); !connected) return ExitFailed(connected.error());
  }
  const auto seen = topic.Visit(
      request, [&](const std::vector<StoredLetter>& letters) { return replayer.Take(letters); });
  replayer.Finish();
  if (!seen) {
    std::fflush(stdout);
    Error error = seen.error();
    if (replayer.replayed() > 0 && request.execute) {
      error.what += fmt::format(" ({} were replayed before)", replayer.replayed());
    }
    return ExitFailed(error);
  }
  replayer.PrintTotals(*seen);
  return replayer.good() ? kOk : kFailed;
}

}  // namespace fencepost::cli
