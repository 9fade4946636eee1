// What the flow hands to the source, the handlers and the output, and what they answer. Plain
// values; flow.h says what each is for, and which thread has it when.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/record/dead_letter.h"
#include "consumer/record/failed_record.h"
#include "consumer/record/record.h"
#include "consumer/trace/trace_context.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

using locking::Instant;
struct InFlight;

// --- the source: consumer/kafka/source ---------------------------------------------------------

struct AssignedPartition {
  PartitionIndex partition = 0;
  TopicPartition where;
  AssignmentEpoch epoch = 0;
  Offset start = 0;                    // committed before this is told
  std::vector<FailedRecord> failed{};  // … and with it
};

struct PartitionOffset {
  PartitionIndex partition = 0;
  AssignmentEpoch epoch = 0;
  Offset next = 0;                     // the offset to go on from: watermark, as Kafka commits it
  std::vector<FailedRecord> failed{};  // from there on, for the next owner: AssignedPartition
};

struct PartitionEnd {
  PartitionIndex partition = 0;
  AssignmentEpoch epoch = 0;
  Offset end = 0;  // the partition was read up to here
};

// --- handlers: consumer/handlers ---------------------------------------------------------------

// What a handler made of a record: one row a value (nullopt: null). None: the record is complete
// and writes no row.
using HandlerValues = std::vector<std::optional<std::string>>;

struct HandlerFailure {
  // What `retry` decides by: "404", "timeout", "connection", "exec", "cancelled", … ; see
  // ErrorClass.
  std::string error_class;
  std::string text;  // one line, for the dead letter: it may hold parts of the record
  // The same without anything of the record, for the log and /status. Empty: the class is there
  // alone.
  std::string shown{};
  bool retry = true;  // false: it would fail again
  // false: the receiver was not reached at all (away, refused, no name). Says nothing about the
  // record: it is tried again for as long as it takes, and does not count as an attempt.
  bool reached = true;
  // false: the record was refused before the receiver was called. Says nothing about the receiver.
  bool asked = true;
  // false: it was cancelled, or not sent in time (HandlerCall::valid_until).
  bool made = true;
  // It is that of a request with several records, as a whole, and says nothing about any of them:
  // the next call of each goes alone.
  bool shared = false;
  std::optional<std::chrono::milliseconds> retry_after;  // the receiver's wish (Retry-After)
};

using HandlerResult = tl::expected<HandlerValues, HandlerFailure>;

// By value: the call outlives the record's place in the flow.
struct HandlerCall {
  std::uint64_t id = 0;  // the flow's
  Record record;         // its `owner` keeps the views good
  TopicPartition where;
  std::string record_id;
  std::uint64_t token = 0;
  int attempt = 1;
  Millis timeout{};
  // Of the lease of `token`. Not sent by then, it is cancelled: another worker may be at the record
  // with a higher token.
  Instant valid_until = Instant::max();
  bool alone = false;    // in no request with others: its failure is to tell of it
  TraceContext trace{};  // of the call's span; none where there are no traces
};

struct HandlerAnswer {
  std::uint64_t id = 0;
  HandlerResult result;
  Nanos took{0};
};

// --- the output: consumer/outputs --------------------------------------------------------------

// One record to write. At most one item an id in a batch. Views and pointers stay good during
// Write.
struct WriteItem {
  const Record* record = nullptr;
  const TopicPartition* where = nullptr;
  std::string_view cluster{};            // the id of the Kafka cluster that it was read from
  const ReplayOrigin* origin = nullptr;  // of an accepted replay
  std::string_view record_id;            // as stored
  std::string_view whole_id{};           // Identity::whole
  bool in_place = false;                 // it is the position where the record was read
  Offset start = 0;                      // where the group went on when the partition was assigned
  locking::Token token;
  locking::ContentCrc crc = 0;
  // What the handler made of the record: one row a value, in order, and none is allowed (then only
  // the ledger has a row). nullptr: no handler, one row of the record's own value.
  const HandlerValues* values = nullptr;
  // Kafka output: the record goes to the dead letter topic instead, in the same transaction. A
  // ledger by position: it is there already; its offset is done, and nothing is written for it.
  const DeadLetter* dead_letter = nullptr;
  // The order chain it belongs to; 0: none, it has no order. Within a request the items of a chain
  // stand in their order. Nothing of a chain is written behind an item that the output refuses.
  std::uint64_t chain = 0;
  // Kafka output: of the record's span, which its header names; none where there are no traces.
  TraceContext trace{};
};

// Where the group goes on, partition by partition, once the items are written.
struct SourceOffset {
  TopicPartition where;
  Offset next = 0;
  std::vector<FailedRecord> failed{};  // as PartitionOffset's
};

struct WriteRequest {
  std::vector<WriteItem> items;
  // Kafka output: sent in the transaction, on behalf of this assignment. Others leave it alone.
  std::vector<SourceOffset> offsets;
  AssignmentEpoch epoch = 0;
  // The records were refused together. Those that are refused alone get kBadRecord, reason kOutput,
  // and the others are committed, all in one transaction. An output that cannot does as without it.
  bool apart = false;
  bool table_takes = false;  // apart: it has just taken others of this batch
};

enum class WriteResult : std::uint8_t {
  kCommitted,   // this call inserted the ledger row and the effect
  kNoOutput,    // the record makes no row, or is a dead letter: nothing was written for it, and its
                // id is free for another content or a replay (LedgerEntry::token)
  kOwnEarlier,  // the ledger row has this source: our own earlier commit; the effect is committed
  kFenced,      // the ledger row has a higher token: another, later holder wrote it; the effect is
                // committed
  kDuplicate,   // the ledger row is another record's with the same id and content; the effect is
                // committed
  kIdConflict,  // the ledger row has another content_crc: same id, other content. Nothing was
                // written
  kBadRecord,   // the database or a selector refused this record alone. Nothing was written
  kNotWritten,  // nothing was written, for no fault of this record (an aborted transaction, or it
                // is behind a refused record of its chain): again
};
// Nothing is left to be written for it.
constexpr bool EffectIsWritten(WriteResult r) { return r <= WriteResult::kDuplicate; }

struct WriteOutcome {
  WriteResult result = WriteResult::kCommitted;
  // kBadRecord, kIdConflict: what, and what is there, in one line of at most 1000 bytes. It may
  // hold parts of the record, so it goes into the record's dead letter and nowhere else.
  std::string detail;
  // kBadRecord: refused by a selector or a rule (kBadRecord), by the database or the broker
  // (kOutput), or because it takes too long (kTimeout).
  DeadLetterReason reason = DeadLetterReason::kBadRecord;
  // The same without anything of the record, for the log, /status and exit messages.
  std::string shown;
  // kBadRecord: it breaks a rule between rows, which another record may be about to mend: a unique
  // value that another key gives up, a row that a foreign key asks for. It may be written again.
  bool may_pass = false;
  // kCommitted: it put rows into the table, and so shows that the table takes rows. A ledger row
  // alone does not, nor does a deletion.
  bool took_rows = true;
  // kCommitted: a row of it had no effect, since that of the table has a higher fence.
  bool lost_to_newer = false;
  // kNotWritten, kBadRecord, kIdConflict: a transaction that held it was not answered, and may
  // still be committed.
  bool in_doubt = false;
  // kOwnEarlier, kFenced, kDuplicate, where the ledger has a row a record: the token of that row.
  locking::Token stands{};
};

// One outcome an item; of offsets alone (no items) one as well: kCommitted or kNotWritten.
inline std::size_t OutcomesOf(const WriteRequest& request) {
  return request.items.empty() ? 1 : request.items.size();
}

struct WriteBatch {
  std::uint64_t id = 0;
  std::vector<InFlight*> records;      // not touched by the flow until OnWritten
  WriteRequest request;                // the same, for the output
  std::vector<PartitionOffset> moves;  // request.offsets, as the flow names partitions
  Instant began;                       // of the first attempt; the output's thread sets it
  // Nothing of it is written from then on, and what has no outcome is handed back: another worker
  // may have written it since, and its rows be pruned.
  Instant until = Instant::max();
  // The newest batch whose outcomes were known when this one was filled; 0: none. What a later one
  // refused must hold back those of its chain that are in here.
  std::uint64_t answered = 0;
};

struct LookupBatch {
  std::vector<std::uint64_t> references;  // the flow's
  std::vector<std::string> ids;
  // The flow's, one an id: how long the lock round took that found the name held, for which the
  // ledger is asked; 0: it is asked for another reason.
  std::vector<Nanos> contended;
  AssignmentEpoch epoch = 0;  // the newest of their records'
  // Of the answer: places of ids whose logs cannot be compared yet, to be asked for again later.
  std::vector<std::size_t> unread{};
};

// What the ledger knows of a record that is done. A token of 0, which nobody draws: nothing was
// written for it. By id, such a row gives way to a record of other content; by position it is that
// of a dead letter, and gives way to its replay. Of a position, which shares its row with others,
// token and worker are those of the last write to its partition, which is this one's or a later
// one; it was completed at `completed_at` or before; and its content is not known.
struct LedgerEntry {
  locking::Token token;
  std::optional<locking::ContentCrc> crc = std::nullopt;
  std::string worker{};
  std::string source{};        // topic/partition/offset
  std::string completed_at{};  // RFC 3339, UTC
};

}  // namespace fencepost::consumer
