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
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/dead_letter.h"
#include "consumer/handlers/handler.h"
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
  // What the handler made of the record: one row a value, in order, and none is allowed (then only
  // the ledger has a row). nullptr: no handler, one row of the record's own value.
  const HandlerValues* values = nullptr;
  // Kafka output: the record goes to the dead letter topic instead, in the same transaction.
  const DeadLetter* dead_letter = nullptr;
};

// Where the group goes on, partition by partition, once the items are written.
struct SourceOffset {
  TopicPartition where;
  Offset next = 0;
};

struct WriteRequest {
  std::vector<WriteItem> items;
  // Kafka output: sent in the transaction, on behalf of this assignment. Others leave it alone.
  std::vector<SourceOffset> offsets;
  AssignmentEpoch epoch = 0;
};

enum class WriteResult : std::uint8_t {
  kCommitted,   // this call inserted the ledger row and the effect
  kOwnEarlier,  // the ledger row has this source: our own earlier commit; the effect stands
  kFenced,  // the ledger row has a higher token: another, later holder wrote it; the effect stands
  kDuplicate,  // the ledger row is another record's with the same id and content; the effect stands
  kIdConflict,  // the ledger row has another content_crc: same id, other content. Nothing was
                // written
  kBadRecord,   // the database or a selector refused this record alone. Nothing was written
  kNotWritten,  // nothing was written, for no fault of this record (an aborted transaction): again
};
constexpr bool EffectStands(WriteResult r) { return r <= WriteResult::kDuplicate; }

struct WriteOutcome {
  WriteResult result = WriteResult::kCommitted;
  std::string detail;              // kBadRecord, kIdConflict: one line: what, and what stands there
  bool refused_by_output = false;  // kBadRecord: by the database or broker, not by a selector
};

struct OutputError {
  // The outcome is unknown or nothing was written: write the same batch again, after a wait.
  // (Every database error that is not about one record is of this kind: away, full, read-only,
  // table missing, permission denied, deadlock, timeout: patience, and the operator mends it.)
  Error error;
  bool retry_at_once = false;  // deadlock, serialization: no wait needed
  bool fatal = false;          // a fenced producer: this worker can never write again, it stops
};

// A ledger row.
struct LedgerEntry {
  locking::Token token;
  locking::ContentCrc crc = 0;
  std::string worker;
  std::string source;        // topic/partition/offset
  std::string completed_at;  // RFC 3339, UTC
};

class Output {
 public:
  virtual ~Output() = default;

  // Connects if need be, finds or creates the ledger, checks table and columns and learns their
  // types.
  virtual tl::expected<void, OutputError> Prepare() = 0;
  // Outcomes in the order of the items. Prepares first if the connection is gone.
  virtual tl::expected<std::vector<WriteOutcome>, OutputError> Write(
      const WriteRequest& request) = 0;
  // The next Write of the same request writes nothing anew: it goes on asking what became of the
  // transaction that was written before.
  [[nodiscard]] virtual bool OutcomePending() const { return false; }
  // What the ledger holds of these ids (as stored), in their order. Without a ledger: nothing.
  virtual tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Lookup(
      const std::vector<std::string>& ids) {
    return std::vector<std::optional<LedgerEntry>>(ids.size());
  }
  // Deletes the ledger rows of these ids; how many there were. For `fencepost forget`.
  virtual tl::expected<std::size_t, OutputError> Forget(const std::vector<std::string>& /*ids*/) {
    return 0;
  }
  // Deletes at most `limit` ledger rows of this pipeline completed longer than `keep` ago; returns
  // how many.
  virtual tl::expected<std::size_t, OutputError> Prune(std::chrono::seconds /*keep*/,
                                                       std::size_t /*limit*/) {
    return 0;
  }
  // From any thread: makes a blocked call return soon (cancels at the server where that is
  // possible).
  virtual void Interrupt() = 0;
};

struct PostgresOptions;
struct SqliteOptions;
struct FileOptions;
struct StdoutOptions;
// `pipeline` and `worker` go into the ledger rows.
std::unique_ptr<Output> MakePostgresOutput(const PostgresOptions& options, std::string pipeline,
                                           std::string worker);
std::unique_ptr<Output> MakeSqliteOutput(const SqliteOptions& options, std::string pipeline,
                                         std::string worker);
// JSON lines; written, then fdatasync (file) or flushed (stdout) before Write returns. No ledger.
std::unique_ptr<Output> MakeFileOutput(const FileOptions& options, std::string worker);
std::unique_ptr<Output> MakeStdoutOutput(const StdoutOptions& options, std::string worker);

}  // namespace fencepost::consumer
