// What can be learnt of one record, gathered part by part from Kafka, the lock nodes, the ledger
// and the dead letter topic. A part that could not be reached says so in its own place; the others
// count all the same. Facts are values; Gather blocks for some seconds at most, on one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/cli/shared/position.h"
#include "consumer/cli/shared/store_view.h"
#include "consumer/kafka/client/topic_reader.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/done_mark.h"
#include "consumer/record/failed_record.h"
#include "locking/base/error.h"
#include "locking/base/types.h"

namespace fencepost::cli {

template <typename T>
using Told = tl::expected<T, Error>;
// What a part told; nullptr: it was not asked, or could not be.
template <typename T>
const T* Known(const std::optional<Told<T>>& part) {
  return part && *part ? &**part : nullptr;
}
// What it found; nullptr: also where it told that there is none.
template <typename T>
const T* Found(const std::optional<Told<std::optional<T>>>& part) {
  const auto* known = Known(part);
  return known != nullptr && *known ? &**known : nullptr;
}

// Who knew where the record is.
enum class PositionFrom : std::uint8_t { kQuestion, kId, kLedgerRow, kDeadLetter, kGroup };

struct Facts {
  consumer::PipelineOptions options;  // as its file says
  std::string file = "FILE";          // Question::file
  locking::WallTime now;
  std::optional<Position> position;  // nothing: asked by id, and no part knows where it is
  PositionFrom position_from = PositionFrom::kQuestion;

  // Kafka; nullopt: not asked, since the position is not known.
  std::optional<Told<consumer::PartitionRange>> range;
  std::optional<Told<std::optional<consumer::Offset>>> committed;
  // What was committed with it of records whose handler has failed: of this one, how many others
  // there are, and whether the service counted as unavailable at the last failure of any.
  std::optional<consumer::FailedRecord> failing;
  std::size_t others_fail = 0;
  std::optional<consumer::FailedRecord> first_fails;  // the first unfinished one, if it is another
  bool unavailable = false;
  std::optional<Told<std::optional<consumer::TopicRecord>>> record;

  std::string id;  // as stored; empty: not known
  // Of the record, where it was read and has this id.
  std::optional<locking::ContentCrc> crc;
  std::optional<consumer::ClusterTag> cluster;  // where DONE marks count, and it was asked
  std::string filtered;                         // why `when` leaves it out; empty: it does not
  std::string no_id;                            // the record is there, and this is why it has no id
  std::string no_row;            // likewise, why it is refused, as far as no service is asked
  bool handler_refuses = false;  // … by the handler, and not as a bad record
  // Whether rows are made of it; nullopt: http or exec would have to be asked.
  std::optional<bool> makes_rows;
  bool null_value = false;  // none are, since on_null_value skips it
  // Where the ledger's row is of other content: how it differs from the record of that row.
  std::optional<Told<std::vector<std::string>>> difference;

  std::string lock;              // its lock's name, the whole key; empty: the id is not known
  std::vector<NodeFacts> nodes;  // empty: not asked, since the id is not known
  // nullopt: no ledger, or not asked.
  std::optional<Told<std::optional<consumer::LedgerEntry>>> row;
  bool newer_row = false;  // the table's has a higher fence; not known with http or exec
  // nullopt: no dead letter topic. Oldest first: of this position, or of this id.
  std::optional<Told<std::vector<StoredLetter>>> letters;
  bool letters_partly = false;  // the topic was not read to its end in time
  std::string worker;  // what /ready of the worker at observe.http says; empty: it is not asked

  // Nothing answered: neither Kafka nor a lock node nor the ledger.
  [[nodiscard]] bool NothingReached() const;
};

struct Question {
  std::optional<Position> position;  // or
  std::string id;                    // as stored
  // The pipeline as commands take it: FILE, --with, --set.
  std::string file = "FILE";
};
// Error: the question makes no sense for this pipeline (exit 2).
tl::expected<Facts, Error> Gather(const consumer::PipelineOptions& options,
                                  const Question& question);

}  // namespace fencepost::cli
