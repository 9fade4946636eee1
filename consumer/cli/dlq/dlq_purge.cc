#include "consumer/cli/dlq/dlq_purge.h"

#include <memory>
#include <optional>

#include <fmt/format.h>

#include "consumer/cli/dlq/dlq_effects.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/kafka/client/admin.h"

namespace fencepost::cli {

using consumer::PipelineOptions;
using std::chrono::seconds;

namespace {

constexpr seconds kReadLimit{30};
constexpr seconds kDeleteLimit{30};

class Purger {
 public:
  Purger(const PipelineOptions& options, const LetterRequest& request)
      : options_(options),
        request_(request),
        ledger_(request.all ? nullptr : LedgerView::Of(options)) {}

  tl::expected<void, Error> Take(const consumer::TopicRecord& stored,
                                 const tl::expected<StoredLetter, std::string>& letter) {
    Place place{{stored.where, stored.record.offset}, "", std::nullopt};
    if (!letter) {
      place.stays = "it is no dead letter of fencepost";
    } else if (letter->pipeline != options_.name) {
      place.stays = fmt::format("it is of pipeline {}", Printable(letter->pipeline));
    } else if (!Matches(request_.filter, *letter)) {
      place.stays = "it is not among those that were asked for";
    } else if (!request_.all) {
      place.letter = letters_.size();
      letters_.push_back(*letter);
    }
    places_.push_back(std::move(place));
    return places_.size() < kLettersAtATime ? tl::expected<void, Error>() : EndBatch();
  }

  tl::expected<void, Error> EndBatch() {
    std::vector<LetterEffect> effects;
    if (!letters_.empty()) {
      auto found = EffectsOf(options_, *ledger_, letters_);
      if (!found) return tl::unexpected(Blind(found.error()));
      effects = std::move(*found);
    }
    for (Place& place : places_) {
      if (place.letter && effects[*place.letter] != LetterEffect::kTaken) {
        const std::string& id = letters_[*place.letter].record_id;
        place.stays = id.empty() ? "it has no record id, so nothing tells whether it took effect"
                                 : fmt::format("id {} has not taken effect", Printable(id));
      }
      plan_.Add(place.at, std::move(place.stays));
    }
    places_.clear();
    letters_.clear();
    return {};
  }

  [[nodiscard]] const PurgePlan& plan() const { return plan_; }

 private:
  struct Place {
    Position at;
    std::string stays;
    std::optional<std::size_t> letter;  // in letters_: the ledger decides
  };

  static Error Blind(Error error) {
    error.what = "the ledger cannot be asked, and without it nothing is deleted: " + error.what;
    error.hint = "run it again when the database answers, or give --all";
    return error;
  }

  const PipelineOptions& options_;
  const LetterRequest& request_;
  const std::unique_ptr<LedgerView> ledger_;
  std::vector<Place> places_;
  std::vector<StoredLetter> letters_;
  PurgePlan plan_;
};

void PrintPlan(const std::string& topic, const PurgePlan& plan, bool execute) {
  for (const auto& [index, partition] : plan.partitions()) {
    std::string line;
    if (partition.letters > 0) {
      line = fmt::format("{} {}/{}: {} dead letter{} before offset {}",
                         execute ? "deleting" : "would delete", topic, index, partition.letters,
                         partition.letters == 1 ? "" : "s", partition.end);
    } else {
      line = fmt::format("nothing to delete in {}/{}", topic, index);
    }
    if (!partition.stays.empty()) {
      line += fmt::format("; offset {} stays: {}", partition.end, partition.stays);
    }
    if (partition.behind > 0) {
      line += fmt::format("; {} behind it stay{}, too, since Kafka deletes only from the beginning",
                          partition.behind, partition.behind == 1 ? "s" : "");
    }
    fmt::print("{}\n", line);
  }
}

tl::expected<void, Error> Delete(const PipelineOptions& options, const PurgePlan& plan) {
  std::vector<consumer::KafkaAdmin::Before> records;
  for (const auto& [index, partition] : plan.partitions()) {
    if (partition.letters == 0) continue;
    records.push_back({{options.dead_letter->topic, index}, partition.end});
  }
  auto admin = consumer::KafkaAdmin::Make(options.kafka);
  if (!admin) return tl::unexpected(admin.error());
  return (*admin)->DeleteRecords(records, kDeleteLimit);
}

}  // namespace

void PurgePlan::Add(const Position& at, std::string why) {
  Partition& partition = partitions_[at.where.partition];
  if (!partition.stays.empty()) {
    partition.behind += why.empty() ? 1 : 0;
    return;
  }
  if (why.empty()) ++partition.letters;
  partition.end = why.empty() ? at.offset + 1 : at.offset;
  partition.stays = std::move(why);
}

std::size_t PurgePlan::letters() const {
  std::size_t sum = 0;
  for (const auto& [index, partition] : partitions_) sum += partition.letters;
  return sum;
}

tl::expected<std::size_t, Error> Purge(const PipelineOptions& options, LetterTopic& topic,
                                       const LetterRequest& request) {
  Purger purger(options, request);
  tl::expected<void, Error> outcome;
  const auto scanned = topic.Scan(
      [&](const consumer::TopicRecord& stored,
          const tl::expected<StoredLetter, std::string>& letter) {
        outcome = purger.Take(stored, letter);
        return outcome.has_value();
      },
      kReadLimit);
  if (!outcome) return tl::unexpected(outcome.error());
  if (!scanned) return tl::unexpected(scanned.error());
  if (outcome = purger.EndBatch(); !outcome) return tl::unexpected(outcome.error());
  const PurgePlan& plan = purger.plan();
  PrintPlan(options.dead_letter->topic, plan, request.execute);
  if (request.execute && plan.letters() > 0) {
    if (auto deleted = Delete(options, plan); !deleted) return tl::unexpected(deleted.error());
  }
  return plan.letters();
}

}  // namespace fencepost::cli
