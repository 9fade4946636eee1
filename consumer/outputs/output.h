// Where effects are written, together with the ledger. One implementation a kind of database. An
// Output belongs to one thread (outputs/writer.h runs it); every call may block.
//
// Contract (DESIGN 2.4): Write puts a batch into ONE transaction: ledger rows on conflict do
// nothing, effects only for rows that were inserted, then a classification of the rest. A
// transaction whose COMMIT was not answered is resolved only by writing the same batch again: the
// caller does that, so Write must tell `unavailable` and never guess.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/record.h"
#include "locking/core/types.h"
#include "locking/error.h"

namespace fencepost::consumer {

// One record to write. At most one item an id in a batch. Views and pointers stay good during
// Write.
struct WriteItem {
  const Record* record = nullptr;
  const TopicPartition* where = nullptr;
  std::string_view record_id;  // as stored
  locking::Token token;
  locking::ContentCrc crc = 0;
};

enum class WriteResult : std::uint8_t {
  kCommitted,   // this call inserted the ledger row and the effect
  kOwnEarlier,  // the ledger row has this source: our own earlier commit; the effect stands
  kFenced,  // the ledger row has a higher token: another, later holder wrote it; the effect stands
  kDuplicate,  // the ledger row is another record's with the same id and content; the effect stands
  kIdConflict,  // the ledger row has another content_crc: same id, other content. Nothing was
                // written
  kBadRecord,   // the database or a selector refused this record alone. Nothing was written
};
constexpr bool EffectStands(WriteResult r) { return r <= WriteResult::kDuplicate; }

struct WriteOutcome {
  WriteResult result = WriteResult::kCommitted;
  std::string detail;  // kBadRecord, kIdConflict: one line: what, and what stands there
};

struct OutputError {
  // The outcome is unknown or nothing was written: write the same batch again, after a wait.
  // (Every database error that is not about one record is of this kind: away, full, read-only,
  // table missing, permission denied, deadlock, timeout: patience, and the operator mends it.)
  Error error;
  bool retry_at_once = false;  // deadlock, serialization: no wait needed
};

class Output {
 public:
  virtual ~Output() = default;

  // Connects if need be, finds or creates the ledger, checks table and columns and learns their
  // types.
  virtual tl::expected<void, OutputError> Prepare() = 0;
  // Outcomes in the order of the items. Prepares first if the connection is gone.
  virtual tl::expected<std::vector<WriteOutcome>, OutputError> Write(
      const std::vector<WriteItem>& items) = 0;
  // Deletes at most `limit` ledger rows of this pipeline completed longer than `keep` ago; returns
  // how many.
  virtual tl::expected<std::size_t, OutputError> Prune(std::chrono::seconds keep,
                                                       std::size_t limit) = 0;
  // From any thread: makes a blocked call return soon (cancels at the server where that is
  // possible).
  virtual void Interrupt() = 0;
};

struct PostgresOptions;
struct SqliteOptions;
// `pipeline` and `worker` go into the ledger rows.
std::unique_ptr<Output> MakePostgresOutput(const PostgresOptions& options, std::string pipeline,
                                           std::string worker);
std::unique_ptr<Output> MakeSqliteOutput(const SqliteOptions& options, std::string pipeline,
                                         std::string worker);

}  // namespace fencepost::consumer
