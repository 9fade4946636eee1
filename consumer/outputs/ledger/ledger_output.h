// The output of every database with a ledger, by id or by position: what it does, in which order,
// and what it remembers. The statements are each database's own. One thread, as every Output.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/ledger/lost_commit_detector.h"
#include "consumer/outputs/ledger/position_memory.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/outputs/rows/row_rules.h"

namespace fencepost::consumer {

class RefusalSearch;

class LedgerOutput : public Output {
 public:
  [[nodiscard]] std::size_t max_records() const final { return max_records_; }
  // Where it fails, no connection stays open: one that is open is prepared.
  tl::expected<void, OutputError> Prepare() final;
  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) final;
  tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Lookup(
      const std::vector<std::string>& ids) final;
  tl::expected<std::size_t, OutputError> Forget(const std::vector<std::string>& ids) final;
  tl::expected<std::size_t, OutputError> ForgetOffsets(const PositionId& first, Offset last) final;
  tl::expected<std::size_t, OutputError> Prune(const PruneScope& scope, std::size_t limit) final;
  tl::expected<bool, OutputError> KnowsTopic(const std::string& topic) final;
  tl::expected<bool, OutputError> HasNewer(const WriteItem& item) final;
  void OnAssignment(AssignmentEpoch epoch) final { memory_.OnAssignment(epoch); }

 protected:
  template <typename T>
  using Answer = tl::expected<T, OutputError>;
  using Outcomes = std::vector<WriteOutcome>;
  using Entries = std::vector<std::optional<LedgerEntry>>;
  using Parts = std::vector<PositionPart>;

  LedgerOutput(std::string pipeline, std::string worker, OutputTerms terms, int max_records,
               tl::expected<EffectShapes, RowProblem> effects);

  // --- the connection ---
  [[nodiscard]] virtual std::string Where() const = 0;  // for errors
  // A new connection, with all that comes before its first question.
  virtual Answer<void> Connect() = 0;
  virtual void Disconnect() = 0;
  // It is as Connect made it, as far as is known.
  [[nodiscard]] virtual bool Connected() const = 0;

  // --- of a database that is prepared; an error leaves the connection, which is closed here ---
  // What its types make of cells, by table of rows_.
  virtual std::span<CellTypes* const> Cells() = 0;
  // One transaction with all of rows_, and, by position, of changes_, which is told the rows as
  // they were under their locks.
  virtual Answer<void> WriteRows(Outcomes& outcomes) = 0;
  // The same with each part behind a savepoint (RefusalSearch), in these steps; after an error, and
  // where nothing is taken, EndApart is not called, and RollBack is.
  using Records = std::vector<std::size_t>;  // of rows_
  // By record of rows_: what is to be said of one that is done; nullopt: it is new.
  using Known = std::vector<std::optional<WriteOutcome>>;
  virtual Answer<Known> BeginApart() = 0;
  // Of each part, why it was refused; nullopt: it was taken. Parts are selected in rows_ on the
  // way. `named`: the records that the database names, where it does.
  struct PartRefusal {
    OutputError error;
    Records named{};
  };
  using Refusals = std::vector<std::optional<PartRefusal>>;
  virtual Answer<Refusals> WriteParts(const std::vector<Records>& parts) = 0;
  // rows_ and, by position, changes_ are what was taken, and what was done before.
  virtual Answer<void> EndApart() = 0;
  virtual void RollBack() = 0;
  // Of the only record of rows_, once the transaction is over: which column it is about.
  virtual void Explain(OutputError& /*refusal*/) {}
  virtual Answer<Entries> LookUpIds(const std::vector<std::string>& ids) = 0;
  virtual Answer<std::size_t> ForgetIds(const std::vector<std::string>& ids) = 0;
  // One a part, with the done ones of its ranges, or all.
  virtual Answer<PositionMemory::Rows> ReadPositions(const Parts& parts) = 0;
  // Takes the parts' ranges out of what is done, with the rows of their dead letters; how many
  // offsets of them were.
  virtual Answer<std::size_t> TakeBack(const Parts& parts) = 0;
  virtual Answer<bool> HasTopic(const std::string& topic) = 0;
  // Whether the table has a higher fence than a row of rows_, under its key.
  virtual Answer<bool> FindsNewer() = 0;

  // --- pruning ---
  struct OldRow {
    std::string id, source, completed_at;
  };
  // Visits kPruneWindow rows, in the order of `completed_at`, that were completed at `from` (empty:
  // ever) or later (`behind`: later), and longer ago than `keep`; until a visit is false.
  virtual Answer<void> VisitOldRows(std::chrono::seconds keep, const std::string& from, bool behind,
                                    const std::function<bool(OldRow)>& visit) = 0;
  // Those that are still the same: one that was forgotten and written again since is young.
  virtual Answer<std::size_t> DeleteRows(const std::vector<OldRow>& rows) = 0;

  // `was_there`: an earlier connection had the ledger.
  [[nodiscard]] LedgerTerms AskedOf(bool was_there) const;
  // rows_, from these items.
  Answer<void> FillRows(const WriteRequest& request, Outcomes& outcomes);
  // By id: all ids of rows_, in their order; and by what the ledger has of them, what is known.
  [[nodiscard]] std::vector<std::string> Ids() const;
  [[nodiscard]] Known KnownBy(const Entries& entries);
  // Since then: the ledger's row of its id says that nothing was written, and gives way to it. Both
  // rows change behind the same savepoint, or neither.
  [[nodiscard]] bool Replaces(std::size_t record) const {
    return replaced_.contains(rows_.item(record).record_id);
  }
  // By position, under the locks of the rows that changes_ has. The offset of a dead letter that
  // comes back is not done; its row goes once it is taken.
  Answer<Known> KnownByPosition();
  // Those that are new, in the order of the request; the others have their outcomes. Behind an id
  // conflict nothing of its chain is new.
  Records Fresh(Known known, Outcomes& outcomes) const;
  // By position, before a transaction of rows_: fills changes_, and asks whether the logs of its
  // partitions are those that their rows know.
  Answer<void> CheckLogs(const std::vector<WriteItem>& items);
  // By position, of rows_: dead letters whose ids are positions, and records that are read
  // elsewhere than their ids say.
  [[nodiscard]] std::vector<std::size_t> Letters() const;
  [[nodiscard]] std::vector<std::size_t> Replays() const;
  // This record of rows_ was new, and is written.
  void Took(std::size_t record, WriteOutcome& outcome) const;
  // The token of its ledger row.
  [[nodiscard]] locking::Token TokenOf(std::size_t record) const {
    return rows_.rows(record) == 0 ? locking::Token() : rows_.item(record).token;
  }
  // `error` as what a transaction failed with. `column`: of the only record of rows_, the one that
  // was refused, of this type.
  struct ColumnOf {
    std::size_t table = 0, row = 0, column = 0;
  };
  [[nodiscard]] OutputError Refusal(OutputError error, WriteFailure failure, std::string detail,
                                    std::optional<ColumnOf> column = {},
                                    std::string_view type = "") const;
  // By position, what a look-up found.
  Answer<Entries> WithLetters(const std::vector<std::string>& ids, Entries entries);
  // Whether the database that was connected still has what it had acknowledged. `same`: it has been
  // there all the time, so somebody deleted what is missing; `how`: what became of it, or "".
  Answer<void> CheckLostCommits(bool same, std::string_view how);

  const std::string pipeline_;
  const std::string worker_;
  const OutputTerms terms_;
  const std::function<locking::Now()> clock_;
  LostCommitDetector lost_commits_;  // by id
  PositionMemory memory_;            // by position
  PositionChanges changes_;          // likewise, of the transaction
  const tl::expected<EffectShapes, RowProblem> effects_;
  BatchRows rows_;
  std::vector<std::size_t> lost_;  // places in the request: WriteOutcome::lost_to_newer
  Records named_;                  // as of PartRefusal, by what was refused last

 private:
  Answer<void> ReopenReplays();
  Answer<void> PrepareIfNeedBe();
  using Why = std::map<std::size_t, OutputError>;  // by record: it was refused alone
  // `taken`: WriteRequest::table_takes.
  Answer<void> WriteApart(Outcomes& outcomes, bool taken);
  Answer<void> ApartSteps(Outcomes& outcomes, Why& why, bool taken);
  Answer<void> SearchApart(RefusalSearch& search, Why& why);
  // After such an error the next call connects again and reads the catalogue again: the operator
  // may have corrected the schema.
  void CloseAfter(const OutputError& error);
  // What a question answered: an error says nothing of any record.
  template <typename T>
  Answer<T> Asked(Answer<T> answer);
  Answer<std::optional<LostCommits>> FindLostCommits();

  // Those of rows_ that it may be about.
  [[nodiscard]] Records SuspectsOf(const OutputError& refusal, Records named) const;

  Answer<std::size_t> PruneIds(const PruneScope& scope, std::size_t limit);

  const std::size_t max_records_;
  std::string prune_from_;           // where the next window of pruning begins
  bool prune_behind_ = false;        // behind that time, not at it
  std::optional<Records> suspects_;  // of the batch that is refused as a whole
  std::size_t refused_ = 0;          // records, by those of late that were written apart
  std::set<std::string, std::less<>> replaced_;  // ids
};

}  // namespace fencepost::consumer
