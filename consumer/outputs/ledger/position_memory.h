// What an output knows of the ledger's rows by position: which of them were seen on this
// connection, their anchors, whether the log of each was compared in this assignment, and what was
// acknowledged, to see whether a database that is met again still has it. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/log_identity/log_sample.h"
#include "consumer/outputs/ledger/lost_commit_detector.h"
#include "consumer/outputs/ledger/position_batch.h"
#include "consumer/outputs/rows/batch_rows.h"

namespace fencepost::consumer {

// Samples of a few of the records of a partition that are done, kept beside its done offsets: they
// tell whether its log is still the one that those were counted in. A value.
//
// The newest one and some before it, at distances that grow as powers of 16, so that some are left
// where compaction takes the newer ones; at most kMost.
class PositionAnchors {
 public:
  static constexpr std::size_t kMost = 8;

  void Add(const LogSample& record);
  // Of a batch, whose newest one may be of another log by then than its oldest.
  void Add(const std::optional<LogSample>& oldest, const std::optional<LogSample>& newest);
  [[nodiscard]] const std::vector<LogSample>& all() const { return all_; }  // the newest first
  [[nodiscard]] bool Has(const LogSample& record) const;
  // "OFFSET:TIMESTAMP:CONTENT …", the newest first.
  [[nodiscard]] std::string Text() const;
  // What it cannot read it leaves out.
  static PositionAnchors Parse(std::string_view text);
  bool operator==(const PositionAnchors&) const = default;

 private:
  std::vector<LogSample> all_;
};

// The code of what BeforeWrite says of commits that were lost before this worker came.
inline constexpr std::string_view kLedgerBehind = "ledger_behind_the_group";

// A row of the database, as far as it was asked for.
struct PositionRow {
  PositionRanges done;
  locking::Token token;
  std::string worker;
  PositionAnchors anchors;
  std::int64_t forgotten = 0;  // how often some of its offsets were taken back
  std::string updated_at{};    // RFC 3339, UTC
};

class PositionMemory {
 public:
  PositionMemory(std::string worker, const OutputTerms& terms)
      : worker_(std::move(worker)), terms_(terms) {}

  [[nodiscard]] const std::string& worker() const { return worker_; }

  // --- rows that exist, and their anchors ---
  void OnConnected();  // what was known of rows may be over
  [[nodiscard]] bool Knows(const PositionKey& key) const;
  // Read outside of a write. What another has written since the row was last seen is compared after
  // the next one.
  void Learn(const PositionKey& key, const PositionAnchors& anchors);
  // The anchors to store with these records; empty: those that are stored stay.
  [[nodiscard]] std::string AnchorsWith(const PositionPart& part) const;

  // --- what is done ---
  // Of a record whose offset is among the done ones of its row.
  [[nodiscard]] WriteOutcome DoneBefore(const PositionRow& row, const WriteItem& item) const;

  // --- whether its log is still the one that was counted in ---
  void OnAssignment(AssignmentEpoch epoch) { epoch_ = std::max(epoch_, epoch); }
  // The newest epoch of the records.
  void OnAssignment(const std::vector<WriteItem>& items);
  // Before the first write of an assignment to each of these partitions: its log is compared,
  // before records of another one go into its row, and their anchors take the place of those that
  // would tell: a worker that ends once it has written compares nothing any more. By the newest
  // anchor, or by all of them, where offsets of the
  // part or behind it are done: these are no news of its log, or it is another log. `read`: rows,
  // one a part. An error that is not fatal names the parts whose logs cannot be read yet, in
  // `later`: no other part waits for them. Once an assignment, it says where the group went on
  // behind what is done (kLedgerBehind), to be told and tried again at once.
  using Rows = std::vector<std::optional<PositionRow>>;
  using ReadRows = std::function<tl::expected<Rows, OutputError>(const std::vector<PositionPart>&)>;
  tl::expected<void, OutputError> BeforeWrite(const std::vector<PositionPart>& parts,
                                              const ReadRows& read);
  // Before a record of this row is said to be done: once an assignment, and again where the row has
  // an anchor that is neither of those compared then nor of what was written here since: who had
  // the partition before may have written a record of the former log meanwhile. A fatal error
  // explains.
  tl::expected<void, OutputError> Compare(const PositionKey& key, const PositionRow& row);

  // What a look-up answers, one an id, once the logs were compared; `rows`: one a part. An error
  // that is not fatal names the ids in `later` whose logs cannot be read yet.
  tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Answer(
      const PositionLookup& asked, const std::vector<std::optional<PositionRow>>& rows);

  // --- what was acknowledged ---
  // A write was committed; `before`: its row under the lock, with the done ones of its ranges at
  // least. What has to be compared now, since later anchors may take its place:
  //
  //   who has written since | records were read in | all was new, | compared
  //   the row was last seen | which assignment     | and settled  |
  //   ----------------------+----------------------+--------------+--------------------------
  //   nobody else           | this one             | yes          | nothing
  //   nobody else           | this one             | no           | the row's anchors
  //   another, or the records are a former one's   | either       | the row's, and the part's
  //
  // "Settled": no former comparison is waiting. Where the log cannot be read, a part that was all
  // new waits for it until the partition's next write, and any other is an error.
  tl::expected<void, OutputError> OnCommitted(const PositionPart& part, const PositionRow& before);
  // Of all parts, whatever is wrong with one: the first fatal error, or one that names parts in
  // `later`. `before`: one a part; nullopt: there was none.
  tl::expected<void, OutputError> OnCommitted(const std::vector<PositionPart>& parts,
                                              const Rows& before);
  void Acknowledge(const PositionPart& part, std::int64_t forgotten);
  // Of every partition of which anything was.
  [[nodiscard]] std::vector<PositionPart> Acknowledged() const;
  // `rows`: one each of Acknowledged, in its order, with the done ones of its ranges; nullopt:
  // gone. What of it is missing. What a person took back meanwhile (`forgotten` moved) is not.
  [[nodiscard]] std::optional<LostCommits> Lost(
      const std::vector<std::optional<PositionRow>>& rows) const;
  // What is missing is explained otherwise.
  void Forget();
  void OnComplete(locking::Now now) { complete_at_ = now.wall; }  // nothing is missing now

 private:
  struct Known {
    bool row = false;           // it is there, as far as this connection knows
    bool seen = false;          // it was, over whichever connection
    PositionAnchors anchors;    // of the row, as it was last seen or written
    AssignmentEpoch epoch = 0;  // that the next three are of
    bool compared = false;
    PositionAnchors same;       // found then in its log as it is, or read from it and written since
    bool before_write = false;  // its log was compared before the first write
    // Written by another, or in a former assignment, and not compared since: perhaps of another
    // log.
    std::vector<LogSample> doubted;
    PositionRanges acknowledged;
    std::int64_t forgotten = 0;
  };

  Known& Of(const PositionKey& key);
  [[nodiscard]] static bool AnotherHasWritten(const Known& known, const PositionPart& part,
                                              const PositionRow& before);
  // Whether the log has records between what is done and where the group went on, which is nobody's
  // doing but a person's, or they are lost. An error: it cannot be read.
  tl::expected<bool, OutputError> LostBehind(const PositionPart& part, const PositionRow& row);
  // What BeforeWrite asks of a partition: all that is done.
  [[nodiscard]] static PositionPart Whole(const PositionPart& part);
  tl::expected<bool, OutputError> BeforeWrite(const PositionPart& part, const PositionRow& row);
  tl::expected<void, OutputError> CompareWith(const PositionKey& key,
                                              const std::vector<LogSample>& known);
  static void Remember(Known& known, const PositionAnchors& anchors);
  void Doubt(Known& known, const LogSample& record) const;
  // Compares what is doubted. Where it is the log's, all of `anchors`, which are the row's, are.
  tl::expected<void, OutputError> CompareDoubted(const PositionKey& key,
                                                 const PositionAnchors& anchors);

  const std::string worker_;
  const OutputTerms& terms_;
  AssignmentEpoch epoch_ = 0;
  std::map<PositionKey, Known> known_;
  locking::WallTime complete_at_{};
};

// What a transaction does to the rows of its partitions, where the database keeps ranges as a text:
// it reads the rows under their locks, asks here what is new, and stores what has changed.
class PositionChanges {
 public:
  explicit PositionChanges(PositionMemory& memory) : memory_(memory) {}

  // The records of a batch; `parts`: the rows to read, one each, in the order to lock them in.
  void Fill(const BatchRows& rows) {
    batch_.Fill(rows);
    reopened_.clear();
  }
  [[nodiscard]] const std::vector<PositionPart>& parts() const { return batch_.parts(); }
  [[nodiscard]] std::size_t part(std::size_t record) const { return batch_.part(record); }
  [[nodiscard]] Offset offset(std::size_t record) const { return batch_.offset(record); }
  [[nodiscard]] bool replay(std::size_t record) const { return batch_.replay(record); }

  // Whether the logs of its partitions are those that their rows know (PositionMemory).
  tl::expected<void, OutputError> BeforeWrite(const PositionMemory::ReadRows& read) {
    return OfItems(memory_.BeforeWrite(parts(), read));
  }

  // --- under the locks, in this order ---
  void OnLocked(std::vector<std::optional<PositionRow>> rows) { before_ = std::move(rows); }
  // Only these of its records are written after all; those that were reopened and are not among
  // them are done as before.
  void Narrow(const BatchRows& rows);
  // Its offset was done as that of a dead letter, which takes effect now.
  void Reopen(std::size_t record);
  // What is to be said of a record that was done before; nullopt: it is new, and counts as done.
  [[nodiscard]] std::optional<WriteOutcome> DoneBefore(std::size_t record,
                                                       const WriteItem& item) const;
  // The rows to store, by their keys, all of whose new records count as done now.
  struct Change {
    const PositionKey& key;
    PositionRow row;
  };
  [[nodiscard]] std::vector<Change> Changed(std::string_view now) const;
  // --- and once it is committed ---
  // The error: it stands, but its outcomes must not be told.
  tl::expected<void, OutputError> OnCommitted();

 private:
  // `later`, which are parts, as items.
  [[nodiscard]] tl::expected<void, OutputError> OfItems(tl::expected<void, OutputError> of) const;

  PositionMemory& memory_;
  PositionBatch batch_;
  std::vector<std::optional<PositionRow>> before_;  // one a part
  std::vector<std::size_t> reopened_;               // records, as they were filled
};

// Takes the ranges out of what is done; how many offsets of them were. 0: the row is as it was.
std::size_t TakeBack(const PositionRanges& ranges, PositionRow& row);

}  // namespace fencepost::consumer
