// Whether a change that is newer than a dead letter's has been written to its row: the replay would
// bring back the past. One thread; every call blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/decode/record_decoder.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/record_filter.h"
#include "consumer/record/identity.h"
#include "consumer/record/selector.h"
#include "locking/base/error.h"

namespace fencepost::cli {

// A record is newer if it is behind the letter's own in its partition, or has a later timestamp:
// keys move when partitions are added, and a topic may be made again. It has been written if the
// ledger knows it, or could have forgotten it.
class NewerChanges {
 public:
  // Both outlive this. `ledger`: nullptr where the output has none, which updates no rows.
  NewerChanges(const consumer::PipelineOptions& options, LedgerView* ledger);

  // By letter, why it must not go back; "": nothing newer was found. Reads the topics that the
  // letters came from, from the oldest letter's time on. Error: Kafka or the ledger cannot be
  // asked.
  tl::expected<std::vector<std::string>, Error> Find(const std::vector<StoredLetter>& letters);

 private:
  struct Change {
    std::size_t letter = 0;
    std::string id;  // as stored
    Position at;
    std::optional<consumer::Millis> timestamp;
  };
  using Rows = std::vector<std::optional<std::string>>;  // by letter
  // What names the row: the columns of key where they can be read without the handler, else the
  // record's key. nullopt: nothing does.
  std::optional<std::string> RowOf(const consumer::Record& record,
                                   const consumer::TopicPartition& where, const std::string& id);
  [[nodiscard]] bool IsNewer(const consumer::TopicRecord& record, const StoredLetter& letter) const;
  // The newest of each letter, kMostChanges at most.
  tl::expected<std::vector<Change>, Error> Changes(const std::vector<StoredLetter>& letters,
                                                   const Rows& rows);
  [[nodiscard]] bool MayBeForgotten(const Change& change) const;
  tl::expected<void, Error> Connect();

  const consumer::PipelineOptions& options_;
  LedgerView* const ledger_;
  std::vector<consumer::Selector> key_;  // empty: the record's key names the row
  std::unique_ptr<consumer::TopicReader> reader_;
  std::unique_ptr<consumer::Identifier> identifier_;
  std::unique_ptr<consumer::RecordDecoder> decoder_;
  std::unique_ptr<consumer::RecordFilter> filter_;
  consumer::Evaluator evaluator_;
};

}  // namespace fencepost::cli
