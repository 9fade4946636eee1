// Where effects are written, together with the ledger. One implementation a kind of database. An
// Output belongs to one thread (outputs/writer.h runs it); every call may block.
//
// Contract (DESIGN 2.4): Write puts its items into ONE transaction: ledger rows on conflict do
// nothing, effects only for rows that were inserted, then a classification of the rest. A
// transaction whose COMMIT was not answered is resolved only by writing the same items again: the
// caller does that, so Write must tell the failure and never guess. Nor does it search for the
// record that a failure is about: write_plan.h does.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  // The order chain it belongs to; 0: none, it has no order. Within a request the items of a chain
  // stand in their order. Nothing of a chain is written behind an item that the output refuses.
  std::uint64_t chain = 0;
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
  kNotWritten,  // nothing was written, for no fault of this record (an aborted transaction, or it
                // is behind a refused record of its chain): again
};
constexpr bool EffectStands(WriteResult r) { return r <= WriteResult::kDuplicate; }

struct WriteOutcome {
  WriteResult result = WriteResult::kCommitted;
  // kBadRecord, kIdConflict: what, and what stands there, in one line of at most 1000 bytes. It may
  // hold parts of the record, so it goes into the record's dead letter and nowhere else.
  std::string detail;
  // kBadRecord: refused by a selector or a rule (kBadRecord), by the database or the broker
  // (kOutput), or because it takes too long (kTimeout).
  DeadLetterReason reason = DeadLetterReason::kBadRecord;
  // The same without anything of the record, for the log, /status and exit messages.
  std::string shown;
  // kCommitted: it put rows into the table, and so shows that the table takes rows. A ledger row
  // alone does not, nor does a deletion.
  bool took_rows = true;
};

// What a failed transaction says about the records in it (WritePlan draws the conclusions).
enum class WriteFailure : std::uint8_t {
  kUnavailable,  // nothing: the server is away, full, read-only, or was never reached
  kLocked,       // another session holds rows or the table; rolled back
  kTooSlow,      // the server's own time limit; rolled back
  kNoAnswer,     // the client's time limit: the outcome is unknown
  kRefused,      // there is something in it that the server does not take; rolled back
};

// One outcome an item; of offsets alone (no items) one as well: kCommitted or kNotWritten.
inline std::size_t OutcomesOf(const WriteRequest& request) {
  return request.items.empty() ? 1 : request.items.size();
}

struct OutputError {
  // The outcome is unknown or nothing was written. Its text holds nothing of any record.
  Error error;
  bool retry_at_once = false;  // deadlock, serialization: no wait needed
  // A fenced producer, a database that lost commits: this worker can never write again, it stops.
  bool fatal = false;
  WriteFailure failure = WriteFailure::kUnavailable;  // of Write; else of no meaning
  // kRefused, kTooSlow: the server's own words, which may quote a record: for its dead letter.
  std::string detail;
};

// Which ledger rows of a pipeline may be forgotten: completed longer than `keep` ago, and either of
// a record that the group has committed (its source lies below an entry of `committed`), or of a
// topic that is not among `topics` any more. Rows of partitions that are not in `committed` stay.
struct PruneScope {
  std::chrono::seconds keep{0};
  std::vector<SourceOffset> committed;
  std::vector<std::string> topics;
};

// What the pipeline as a whole asks of an output with a ledger.
struct OutputTerms {
  // Tables that forget in a crash, or that are outside of the transaction, are refused.
  bool exactly_once = false;
  std::optional<std::chrono::seconds> keep;  // ledger.keep; nullopt: for ever
  std::string group;                         // the consumer group, for messages
  std::function<locking::Now()> clock;       // nullptr: the host's
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
  // 0: a request is one transaction, and its outcomes are final. Else a request may be written in
  // parts of at most so many items.
  [[nodiscard]] virtual std::size_t max_records() const { return 0; }
  // Outcomes in the order of the items, as many as OutcomesOf says. Prepares first if the
  // connection is gone. Where a request may be written in parts, kNotWritten means that the item
  // was no part of this transaction: it is to be written by a later one, unless it stands behind a
  // refused one of its chain. With an outcome kBadRecord or kIdConflict nothing behind that item in
  // its chain was written.
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
  // Deletes at most `limit` ledger rows of this pipeline that `scope` allows; returns how many. One
  // call looks at a bounded number of rows, and the next one goes on behind them.
  virtual tl::expected<std::size_t, OutputError> Prune(const PruneScope& /*scope*/,
                                                       std::size_t /*limit*/) {
    return 0;
  }
  // Whether the ledger holds a row of this pipeline that came from this topic. It may read all of
  // the pipeline's rows. Without a ledger: false.
  virtual tl::expected<bool, OutputError> KnowsTopic(const std::string& /*topic*/) { return false; }
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
                                           std::string worker, OutputTerms terms = {});
std::unique_ptr<Output> MakeSqliteOutput(const SqliteOptions& options, std::string pipeline,
                                         std::string worker, OutputTerms terms = {});
// JSON lines; written, then fdatasync (file) or flushed (stdout) before Write returns. No ledger.
std::unique_ptr<Output> MakeFileOutput(const FileOptions& options, std::string worker);
std::unique_ptr<Output> MakeStdoutOutput(const StdoutOptions& options, std::string worker);

}  // namespace fencepost::consumer
