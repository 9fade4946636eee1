#include "consumer/cli/dlq/dlq_topic.h"

#include <utility>

#include "consumer/cli/dlq/dlq_decide.h"
#include "consumer/cli/shared/ledger_view.h"

namespace fencepost::cli {

using consumer::Millis;
using consumer::TopicReader;
using consumer::TopicRecord;

namespace {

constexpr std::size_t kAtATime = 500;
constexpr std::chrono::seconds kLookupLimit{30};

}  // namespace

tl::expected<LetterTopic, Error> LetterTopic::Open(const consumer::PipelineOptions& options,
                                                   Millis limit) {
  auto reader = TopicReader::Make(options.kafka);
  if (!reader) return tl::unexpected(reader.error());
  auto ranges = (*reader)->Ranges(options.dead_letter->topic, limit);
  if (!ranges) {
    Error error = ranges.error();
    if (error.code == "unknown_topic") {
      error.hint = "is dead_letter.topic right? The topic has to be made before workers need it";
    }
    return tl::unexpected(std::move(error));
  }
  return LetterTopic(std::move(*reader), std::move(*ranges));
}

tl::expected<void, Error> LetterTopic::Scan(const Take& take, Millis limit) {
  std::vector<Met> batch;
  tl::expected<bool, Error> more = true;
  const auto hand_over = [&] {
    more = take(std::exchange(batch, {}));
    return more.value_or(false);
  };
  tl::expected<void, Error> read;
  for (auto range = ranges_.begin(); range != ranges_.end() && read && more.value_or(false);
       ++range) {
    read = reader_->Read(
        {*range},
        [&](const TopicRecord& stored) {
          batch.push_back({{stored.where, stored.record.offset}, ReadLetter(stored)});
          return batch.size() < kAtATime || hand_over();
        },
        limit);
  }
  if (!batch.empty()) hand_over();
  return more ? read : tl::unexpected(more.error());
}

tl::expected<LettersSeen, Error> LetterTopic::Visit(const LetterRequest& request,
                                                    const TakeLetters& take) {
  LettersSeen seen;
  const auto full = [&] { return request.limit > 0 && seen.matched == request.limit; };
  return Scan([&](const std::vector<Met>& batch) {
           std::vector<StoredLetter> letters;
           for (auto met = batch.begin(); met != batch.end() && !full(); ++met) {
             if (!met->letter) {
               ++seen.strange;
             } else if (met->letter->pipeline != request.filter.pipeline) {
               ++seen.of_others;
             } else if (Matches(request.filter, *met->letter)) {
               ++seen.matched;
               letters.push_back(*met->letter);
             }
           }
           return take(letters).map([&] { return !full(); });
         })
      .map([&] { return seen; });
}

tl::expected<std::vector<LetterEffect>, Error> EffectsOf(const consumer::PipelineOptions& options,
                                                         LedgerView& ledger,
                                                         const std::vector<StoredLetter>& letters) {
  std::vector<std::string> ids;
  std::vector<std::size_t> letter_of;  // by id
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const StoredLetter& letter = letters[i];
    const auto add = [&](std::string id) {
      ids.push_back(std::move(id));
      letter_of.push_back(i);
    };
    if (!letter.record_id.empty() && letter.error_class != kIdConflict) add(letter.record_id);
    if (options.identity.accept_replay_ids) add(NewReplayId(letter));
  }
  return ledger.Lookup(ids, kLookupLimit).map([&](const LedgerView::Rows& rows) {
    std::vector<LetterEffect> effects(letters.size(), LetterEffect::kNone);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (rows[i]) effects[letter_of[i]] = LetterEffect::kTaken;
    }
    return effects;
  });
}

}  // namespace fencepost::cli
