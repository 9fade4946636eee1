#include <cstdio>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "consumer/cli/dlq/dlq_commands.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/kafka/client/admin.h"

namespace fencepost::cli {

using consumer::PipelineOptions;

namespace {

constexpr std::chrono::seconds kDeleteLimit{30};
constexpr std::size_t kLookupsAtATime = 500;

// Of one partition.
struct Share {
  std::size_t letters = 0;   // that go
  consumer::Offset end = 0;  // all before this offset go
  std::size_t behind = 0;    // that could go, but for the record at `end`
  std::string stays;         // why that record stays; empty: none does

  // Records in the order of their offsets. `why`: why it stays; empty: it may go.
  void Add(consumer::Offset at, const std::string& why) {
    if (!stays.empty()) {
      behind += why.empty() ? 1 : 0;
      return;
    }
    if (why.empty()) ++letters;
    end = why.empty() ? at + 1 : at;
    stays = why;
  }
};
using Shares = std::map<std::int32_t, Share>;

// As far as the topic itself tells.
std::string WhyItStays(const PipelineOptions& options, const LetterRequest& request,
                       const Met& met) {
  if (!met.letter && !met.program.empty()) {
    return fmt::format("it is a dead letter of {}", met.program);
  }
  if (!met.letter) return "it is no dead letter of fencepost";
  if (met.letter->pipeline != options.name) {
    return fmt::format("it is of pipeline {}", Printable(met.letter->pipeline));
  }
  return Matches(request.filter, *met.letter) ? "" : "it is not among those that were asked for";
}

std::string WhyItMayBeNeeded(const std::string& id, LetterEffect effect) {
  if (effect == LetterEffect::kTaken) return "";
  if (effect == LetterEffect::kOfAnother) {
    return fmt::format("the topic was made again, and id {} is another record's", Printable(id));
  }
  return id.empty() ? "it has no record id, so nothing tells whether it took effect"
                    : fmt::format("id {} has not taken effect", Printable(id));
}

Error Blind(Error error) {
  error.what =
      "what took effect cannot be asked, and without that nothing is deleted: " + error.what;
  error.hint = "run it again when the database answers, or give --all";
  return error;
}

// Error: the ledger or the topic cannot be read.
tl::expected<Shares, Error> MakePlan(const PipelineOptions& options, LetterTopic& topic,
                                     const LetterRequest& request) {
  Shares plan;
  const auto ledger = request.all ? nullptr : LedgerView::Of(options);
  std::vector<Met> batch;
  tl::expected<void, Error> added;
  const auto add = [&]() -> tl::expected<void, Error> {
    std::vector<std::string> whys;
    std::vector<StoredLetter> letters;  // of which the ledger decides
    for (const Met& met : batch) {
      whys.push_back(WhyItStays(options, request, met));
      if (whys.back().empty() && ledger != nullptr) letters.push_back(*met.letter);
    }
    tl::expected<std::vector<LetterEffect>, Error> effects;
    if (!letters.empty()) effects = EffectsOf(options, *ledger, letters);
    if (!effects) return tl::unexpected(Blind(effects.error()));
    auto effect = effects->begin();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (whys[i].empty() && ledger != nullptr) {
        whys[i] = WhyItMayBeNeeded(batch[i].letter->record_id, *effect++);
      }
      plan[batch[i].at.where.partition].Add(batch[i].at.offset, whys[i]);
    }
    batch.clear();
    return {};
  };
  const auto read = topic.Scan([&](const Met& met) {
    batch.push_back(met);
    if (batch.size() == kLookupsAtATime) added = add();
    return added.has_value();
  });
  if (!read) return tl::unexpected(read.error());
  if (added) added = add();
  return added.map([&] { return plan; });
}

std::string ShareText(const std::string& partition, const Share& share, bool execute) {
  std::string line = fmt::format("nothing to delete in {}", partition);
  if (share.letters > 0) {
    line = fmt::format("{} {}: {} dead letter{} before offset {}",
                       execute ? "deleting" : "would delete", partition, share.letters,
                       share.letters == 1 ? "" : "s", share.end);
  }
  if (!share.stays.empty()) line += fmt::format("; offset {} stays: {}", share.end, share.stays);
  if (share.behind > 0) {
    line += fmt::format("; {} behind it stay{}, too, since Kafka deletes only from the beginning",
                        share.behind, share.behind == 1 ? "s" : "");
  }
  return line;
}

}  // namespace

int Purge(const PipelineOptions& options, LetterTopic& topic, const LetterRequest& request) {
  const auto plan = MakePlan(options, topic, request);
  if (!plan) return ExitFailed(plan.error());
  std::size_t letters = 0;
  std::vector<consumer::KafkaAdmin::Before> records;
  for (const auto& [index, share] : *plan) {
    const consumer::TopicPartition where{options.dead_letter->topic, index};
    fmt::print("{}\n", ShareText(fmt::format("{}/{}", where.topic, index), share, request.execute));
    letters += share.letters;
    if (share.letters > 0) records.push_back({where, share.end});
  }
  if (request.execute && letters > 0) {
    const auto admin = consumer::KafkaAdmin::Make(LetterCluster(options));
    const auto deleted = admin.and_then(
        [&](const auto& made) { return made->DeleteRecords(records, kDeleteLimit); });
    if (!deleted) {
      std::fflush(stdout);
      return ExitFailed(deleted.error());
    }
  }
  fmt::print("{} dead letter{} {}deleted\n", letters, letters == 1 ? "" : "s",
             request.execute ? "" : "would be ");
  if (!request.execute) fmt::print("nothing was deleted: --execute does it\n");
  return kOk;
}

}  // namespace fencepost::cli
