#include "consumer/cli/dlq/dlq_topic.h"

#include <utility>

#include <fmt/format.h>

#include "consumer/cli/dlq/dlq_decide.h"
#include "consumer/cli/dlq/position_reuse.h"
#include "consumer/cli/shared/ledger_view.h"

namespace fencepost::cli {

using consumer::Millis;
using consumer::TopicReader;
using consumer::TopicRecord;

namespace {

constexpr std::size_t kAtATime = 500;  // letters
constexpr std::chrono::seconds kOneLookupLimit{30};

}  // namespace

std::string LettersSeen::LeftOut() const {
  std::string text;
  if (of_others > 0) text += fmt::format(", {} of other pipelines left out", of_others);
  if (strange > 0) {
    text += fmt::format(", {} in the topic {} of fencepost",
                        strange == 1 ? "1 record" : fmt::format("{} records", strange),
                        strange == 1 ? "is no dead letter" : "are no dead letters");
  }
  if (!program.empty()) {
    text += fmt::format(
        " but of {}: a pipeline that has the topic among its kafka.topics processes them", program);
  }
  return text;
}

tl::expected<LetterTopic, Error> LetterTopic::Open(const consumer::PipelineOptions& options,
                                                   Millis limit) {
  auto reader = TopicReader::Make(LetterCluster(options));
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

tl::expected<void, Error> LetterTopic::Scan(const Look& look, Millis limit) {
  bool more = true;
  tl::expected<void, Error> read;
  for (auto range = ranges_.begin(); range != ranges_.end() && read && more; ++range) {
    read = reader_->Read(
        {*range},
        [&](const TopicRecord& stored) {
          return more = look({{stored.where, stored.record.offset},
                              ReadLetter(stored),
                              ProgramOfLetter(stored.record)});
        },
        limit);
  }
  return read;
}

tl::expected<LettersSeen, Error> LetterTopic::Visit(const LetterRequest& request,
                                                    const TakeLetters& take) {
  LettersSeen seen;
  std::vector<StoredLetter> letters;
  tl::expected<void, Error> taken;
  const auto look = [&](const Met& met) {
    if (!met.letter) {
      ++seen.strange;
      if (seen.program.empty()) seen.program = met.program;
    } else if (met.letter->pipeline != request.filter.pipeline) {
      ++seen.of_others;
    } else if (Matches(request.filter, *met.letter)) {
      ++seen.matched;
      letters.push_back(*met.letter);
    }
    if (letters.size() == kAtATime) taken = take(std::exchange(letters, {}));
    return taken && !(request.limit > 0 && seen.matched == request.limit);
  };
  if (const auto read = Scan(look); !read) return tl::unexpected(read.error());
  if (taken && !letters.empty()) taken = take(letters);
  return taken.map([&] { return seen; });
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
  const auto rows = ledger.Lookup(ids, kOneLookupLimit);
  if (!rows) return tl::unexpected(rows.error());
  const auto reused = FindReuse(options, letters);
  if (!reused) return tl::unexpected(reused.error());
  std::vector<LetterEffect> effects(letters.size(), LetterEffect::kNone);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool taken = (*rows)[i] && (*rows)[i]->token != locking::Token();
    if (taken) effects[letter_of[i]] = LetterEffect::kTaken;
  }
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (!(*reused)[i].empty()) effects[i] = LetterEffect::kOfAnother;
  }
  return effects;
}

}  // namespace fencepost::cli
