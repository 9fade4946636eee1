// Which dead letters may be replayed.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/cli/dlq/dlq_decide.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/pipeline/read_topics.h"
#include "locking/base/planted.h"

namespace fencepost::cli {
namespace {

using consumer::PipelineOptions;

ReplayDecision Refuse(std::string why) { return {.replay = false, .why = std::move(why)}; }

std::string RowText(const consumer::LedgerEntry& row) {
  return fmt::format("{} by {} from {} under token {}", Printable(row.completed_at),
                     Printable(row.worker), Printable(row.source), row.token.value());
}

// By position: its row, which says that it may come back, is kept no longer than that.
bool MayBePruned(const PipelineOptions& options, const consumer::LedgerEntry& row) {
  return options.identity.ByPosition() && options.ledger_keep && row.token != locking::Token();
}

// Of an id that the ledger has: nothing was written for this record.
bool MayReplay(const StoredLetter& letter, const PipelineOptions& options, bool as_new_id,
               const consumer::LedgerEntry& row) {
  if (row.token != locking::Token()) return as_new_id && MayBePruned(options, row);
  return options.identity.ByPosition() || row.source != letter.origin.Text();
}

ReplayDecision Done(const StoredLetter& letter, const PipelineOptions& options,
                    const consumer::LedgerEntry& row) {
  const bool nothing = row.token == locking::Token();
  ReplayDecision decision = Refuse(fmt::format(
      "id {} {}: completed {}{}", Printable(letter.record_id),
      nothing ? "was done, and made no row" : "has taken effect", RowText(row),
      MayBePruned(options, row) ? "; or ledger.keep has passed since it became a dead letter: then "
                                  "--as-new-id replays it"
                                : ""));
  decision.done = true;
  return decision;
}

ReplayDecision AsNew(const StoredLetter& letter, const PipelineOptions& options) {
  ReplayDecision decision{.replay = true};
  const bool by_position = options.identity.ByPosition();
  if (options.identity.accept_replay_ids && !by_position) {
    decision.header_id = NewReplayId(letter);
  } else if (!by_position && letter.error_class == kIdConflict) {
    if (options.on_id_conflict == consumer::OnBad::kStop) {
      return Refuse(
          fmt::format("its content still says id {}, so it would conflict again and stop the "
                      "pipeline (on_id_conflict: stop); set kafka.accept_replay_ids: true",
                      Printable(letter.record_id)));
    }
    decision.why = fmt::format(
        "its content still says id {}: unless that id was forgotten it conflicts again; with "
        "kafka.accept_replay_ids: true the replay would carry a new id",
        Printable(letter.record_id));
  }
  return decision;
}

}  // namespace

std::string NewReplayId(const StoredLetter& letter) {
  return fmt::format("{}:replay:{}", letter.record_id, letter.at().Text());
}

ReplayDecision Decide(const StoredLetter& letter, const PipelineOptions& options, bool as_new_id,
                      const std::optional<consumer::LedgerEntry>& row) {
  const std::string& topic = letter.origin.where.topic;
  if (!consumer::ReadTopics(options.kafka.topics).Has(topic)) {
    return Refuse(
        fmt::format("it came from {}, which the pipeline does not read (kafka.topics: {})",
                    Printable(topic), fmt::join(options.kafka.topics, ", ")));
  }
  const bool conflict = letter.error_class == kIdConflict;
  if (conflict && !as_new_id) {
    return Refuse(fmt::format(
        "id {} was processed with other content{}; --as-new-id replays it all the "
        "same",
        Printable(letter.record_id), row ? fmt::format(" (completed {})", RowText(*row)) : ""));
  }
  if (row && !conflict && !MayReplay(letter, options, as_new_id, *row) &&
      !Planted("replay_of_what_took_effect")) {
    return Done(letter, options, *row);
  }
  if (as_new_id) return AsNew(letter, options);
  if (letter.record_id.empty()) {
    return Refuse(
        "it has no record id, so nothing would recognise a second replay; --as-new-id "
        "replays it all the same");
  }
  if (options.identity.ByPosition() && !options.identity.accept_replay_ids) {
    return Refuse(
        "record_id is position, and a replay has a new one: nothing would recognise a second "
        "replay; set kafka.accept_replay_ids: true, or use --as-new-id");
  }
  return {.replay = true, .header_id = letter.record_id};
}

}  // namespace fencepost::cli
