// Where effects are written, together with the ledger. One implementation a kind of database. An
// Output belongs to one thread (outputs/writer.h runs it); every call may block.
//
// Contract: Write puts its items into ONE transaction: ledger rows for the ids that have none,
// effects only for rows that were inserted, then a classification of the rest. A
// transaction whose COMMIT was not answered is resolved only by writing the same items again: the
// caller does that, so Write must tell the failure and never guess. Nor does it search for the
// record that a failure is about, but for refusals where it is asked to (WriteRequest::apart):
// write_retry.h does.
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

#include "consumer/flow/ports/ports.h"
#include "consumer/kafka/log_identity/log_sample.h"
#include "consumer/pipeline/read_topics.h"
#include "consumer/pipeline/record_filter.h"
#include "consumer/record/position_id.h"
#include "consumer/record/record.h"
#include "locking/base/error.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

// What a failed transaction says about the records in it (WriteRetry draws the conclusions).
enum class WriteFailure : std::uint8_t {
  kUnavailable,    // nothing: the server is unreachable, full, read-only, or the connection broke,
                   // perhaps before COMMIT was answered: the outcome is unknown
  kLocked,         // another session holds rows or the table; rolled back
  kTooSlow,        // the server's own time limit; rolled back
  kClientTimeout,  // the client's time limit: the outcome is unknown
  kRefused,        // there is something in it that the server does not take; rolled back
};

struct OutputError {
  // The outcome is unknown or nothing was written. Its text holds nothing of any record.
  Error error;
  bool retry_at_once = false;  // deadlock, serialization: no wait needed
  // A fenced producer, a database that lost commits: this worker can never write again, it stops.
  bool fatal = false;
  WriteFailure failure = WriteFailure::kUnavailable;  // of Write; else of no meaning
  bool unanswered = false;  // of Write: the transaction was sent, and may be committed yet
  // kRefused, kTooSlow: the server's own words, which may quote a record: for its dead letter.
  std::string detail;
  // kRefused: the same for refusals for the same reason, as far as the database tells them apart.
  std::string kind{};
  // kRefused: by which of the tables of effects, as BatchRows has them; nullopt: it is not known.
  std::optional<std::size_t> table{};
  // kRefused: the rule between rows that is broken (WriteOutcome::may_pass). kUnique: of no meaning
  // where no record changes or deletes a row.
  enum class Between : std::uint8_t { kNone, kUnique, kForeignKey } between = Between::kNone;
  // Not fatal, of Write and Lookup: the items or ids whose log cannot be compared yet, by their
  // places, ascending. The others can be written or looked up without them.
  std::vector<std::size_t> later{};
};

// Which ledger rows of a pipeline may be forgotten: completed longer than `keep` ago, and either of
// a record that the group has committed (its source lies below an entry of `committed`), or of a
// topic that `topics` do not read any more. Rows of partitions that are not in `committed` stay.
struct PruneScope {
  std::chrono::seconds keep{0};
  std::vector<SourceOffset> committed;
  ReadTopics topics;
};

// What the pipeline as a whole asks of an output with a ledger.
struct OutputTerms {
  // Tables that forget in a crash, or that are outside of the transaction, are refused.
  bool exactly_once = false;
  std::optional<std::chrono::seconds> keep;  // ledger.keep; nullopt: for ever
  std::string group;                         // the consumer group, for messages
  std::function<locking::Now()> clock;       // nullptr: the host's
  // Nothing is created: without a ledger Prepare, and what needs one, is the error
  // "ledger_missing".
  bool look_only = false;
  // The ids are positions (consumer/record/position_id.h): the ledger has one row a partition, with
  // the ranges of the offsets that are done, and no record has an id of another form.
  bool by_position = false;
  bool filtered = false;  // some records never come here (`when`): no row tells that they are done
  // Of an effect's `when`; nullptr: conditions alone, no jq.
  std::function<tl::expected<std::unique_ptr<RecordFilter>, Error>(const FilterOptions&)>
      make_filter;
  // By position: before the first record of a partition in an assignment is written, or said to be
  // done, its log is compared with what the ledger knows of it. nullptr: it is not.
  ReadLog read_log;
};

class Output {
 public:
  virtual ~Output() = default;

  // Connects if need be, finds or creates the ledger, checks table and columns and learns their
  // types.
  virtual tl::expected<void, OutputError> Prepare() = 0;
  // Of what Prepare found: what works, and will hurt; a line each.
  [[nodiscard]] virtual std::vector<std::string> Advice() const { return {}; }
  // 0: a request is one transaction, and its outcomes are final. Else a request may be written in
  // parts of at most so many items.
  [[nodiscard]] virtual std::size_t max_records() const { return 0; }
  // Outcomes in the order of the items, as many as OutcomesOf says. Prepares first if the
  // connection is gone. Where a request may be written in parts, kNotWritten means that the item
  // was no part of this transaction: it is to be written by a later one, unless it is behind a
  // refused one of its chain. With an outcome kBadRecord or kIdConflict nothing behind that item in
  // its chain was written.
  virtual tl::expected<std::vector<WriteOutcome>, OutputError> Write(
      const WriteRequest& request) = 0;
  // The next Write of the same request writes nothing again: it goes on asking what became of the
  // transaction that was written before.
  [[nodiscard]] virtual bool OutcomePending() const { return false; }
  // Of the last Write: which dead letter it holds back while it writes the rest, and what is
  // needed; empty: none.
  [[nodiscard]] virtual std::string HeldBack() const { return {}; }
  // A newer assignment: records of it are written or looked up from now on. (Write finds it in its
  // records, too.)
  virtual void OnAssignment(AssignmentEpoch /*epoch*/) {}
  // What the ledger holds of these ids (as stored), in their order. Without a ledger: nothing.
  virtual tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Lookup(
      const std::vector<std::string>& ids) {
    return std::vector<std::optional<LedgerEntry>>(ids.size());
  }
  // Whether the table has a newer row of this record's key, by fence_by: its own was replaced, or
  // had no effect. Without a fence: false.
  virtual tl::expected<bool, OutputError> HasNewer(const WriteItem& /*item*/) { return false; }
  // Deletes the ledger rows of these ids; how many there were. For `fencepost forget`.
  virtual tl::expected<std::size_t, OutputError> Forget(const std::vector<std::string>& /*ids*/) {
    return 0;
  }
  // By position: takes back all offsets of `first`'s partition from its own to `last`, whether or
  // not they have records; how many of them were done.
  virtual tl::expected<std::size_t, OutputError> ForgetOffsets(const PositionId& /*first*/,
                                                               Offset /*last*/) {
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
struct MysqlOptions;
struct SqliteOptions;
struct FileOptions;
struct StdoutOptions;
// `pipeline` and `worker` go into the ledger rows.
std::unique_ptr<Output> MakePostgresOutput(const PostgresOptions& options, std::string pipeline,
                                           std::string worker, OutputTerms terms = {});
std::unique_ptr<Output> MakeMysqlOutput(const MysqlOptions& options, std::string pipeline,
                                        std::string worker, OutputTerms terms = {});
std::unique_ptr<Output> MakeSqliteOutput(const SqliteOptions& options, std::string pipeline,
                                         std::string worker, OutputTerms terms = {});
// JSON lines; written, then fdatasync (file) or flushed (stdout) before Write returns. No ledger.
std::unique_ptr<Output> MakeFileOutput(const FileOptions& options, std::string worker);
std::unique_ptr<Output> MakeStdoutOutput(const StdoutOptions& options, std::string worker);

}  // namespace fencepost::consumer
