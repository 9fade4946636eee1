// What can be learnt of one record, gathered part by part from Kafka, the lock nodes, the ledger
// and the dead letter topic. A part that could not be reached says so in its own place; the others
// count all the same. Facts are values; Gather blocks for some seconds at most, on one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/shared/position.h"
#include "consumer/cli/shared/store_view.h"
#include "consumer/kafka/client/topic_reader.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"
#include "locking/base/types.h"

namespace fencepost::cli {

template <typename T>
using Told = tl::expected<T, Error>;

struct RecordFacts {
  std::optional<locking::WallTime> timestamp;
  std::optional<std::string> key;
  std::optional<std::size_t> value_bytes;  // nullopt: a tombstone
  std::size_t headers = 0;
};

struct LetterFacts {
  Position at;      // in the dead letter topic
  Position origin;  // of the record that died
  std::string error_class;
  std::string error;
  std::string failed_at;
};

// Who knew where the record is.
enum class PositionFrom : std::uint8_t { kQuestion, kId, kLedgerRow, kDeadLetter };

struct Facts {
  // The pipeline, as its file says.
  std::string pipeline;
  std::string group;
  std::string output;  // a name for people
  consumer::Finality finality = consumer::Finality::kLedger;
  consumer::StartFrom start_from = consumer::StartFrom::kEarliest;
  consumer::OnBad on_id_conflict = consumer::OnBad::kStop;
  consumer::OnBad on_bad_record = consumer::OnBad::kStop;
  bool position_ids = false;
  std::optional<std::chrono::seconds> ledger_keep;
  locking::Millis remember_done{0};
  std::int64_t block = 1;         // LockBlock
  std::string dead_letter_topic;  // empty: none

  locking::WallTime now;
  std::optional<Position> position;  // nothing: asked by id, and no part knows where it is
  PositionFrom position_from = PositionFrom::kQuestion;

  // Kafka; nullopt: not asked, since the position is not known.
  std::optional<Told<consumer::PartitionRange>> range;
  std::optional<Told<std::optional<consumer::Offset>>> committed;
  std::optional<Told<std::optional<RecordFacts>>> record;

  std::string id;  // as stored; empty: not known
  std::optional<locking::ContentCrc> crc;
  std::string no_id;   // the record is there, and this is why it has no id
  std::string no_row;  // likewise, why the output's columns refuse it; not known with a handler
  // Where the ledger's row is of other content: how it differs from the record of that row.
  std::optional<Told<std::vector<std::string>>> difference;

  std::string lock;              // its lock's name, the whole key; empty: the id is not known
  std::vector<NodeFacts> nodes;  // empty: not asked, since the id is not known
  // nullopt: no ledger, or not asked.
  std::optional<Told<std::optional<consumer::LedgerEntry>>> row;
  // nullopt: no dead letter topic. Oldest first: of this position, or of this id.
  std::optional<Told<std::vector<LetterFacts>>> letters;
  bool letters_partly = false;  // the topic was not read to its end in time

  // Nothing answered: neither Kafka nor a lock node nor the ledger.
  [[nodiscard]] bool NothingReached() const;
};

struct Question {
  std::optional<Position> position;  // or
  std::string id;                    // as stored
};
// Error: the question makes no sense for this pipeline (exit 2).
tl::expected<Facts, Error> Gather(const consumer::PipelineOptions& options,
                                  const Question& question);

}  // namespace fencepost::cli
