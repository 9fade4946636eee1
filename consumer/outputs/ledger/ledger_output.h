// What the outputs with a ledger have in common, whether it has a row an id or, by position, ranges
// of offsets a partition. What asks the database is each one's own. One thread, as every Output.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/lost_commit_detector.h"
#include "consumer/outputs/ledger/position_memory.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/outputs/rows/row_rules.h"

namespace fencepost::consumer {

class LedgerOutput : public Output {
 public:
  [[nodiscard]] std::size_t max_records() const final { return max_records_; }
  // Where it fails, no connection stays open: one that is open is prepared.
  tl::expected<void, OutputError> Prepare() final;
  tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Lookup(
      const std::vector<std::string>& ids) final;
  tl::expected<std::size_t, OutputError> Forget(const std::vector<std::string>& ids) final;
  tl::expected<std::size_t, OutputError> ForgetOffsets(const PositionId& first, Offset last) final;
  tl::expected<std::size_t, OutputError> Prune(const PruneScope& scope, std::size_t limit) final;
  void OnAssignment(AssignmentEpoch epoch) final { memory_.OnAssignment(epoch); }

 protected:
  template <typename T>
  using Answer = tl::expected<T, OutputError>;
  using Outcomes = std::vector<WriteOutcome>;
  using Entries = std::vector<std::optional<LedgerEntry>>;
  using Parts = std::vector<PositionPart>;

  LedgerOutput(std::string pipeline, std::string worker, OutputTerms terms, int max_records,
               tl::expected<RowShape, RowProblem> shape);

  // A new connection, with all that comes before its first question.
  virtual Answer<void> Connect() = 0;
  virtual void Disconnect() = 0;

  // --- the questions, of a database that is prepared ---
  virtual Answer<void> PrepareIfNeedBe() = 0;
  virtual Answer<Entries> LookUpIds(const std::vector<std::string>& ids) = 0;
  virtual Answer<std::size_t> ForgetIds(const std::vector<std::string>& ids) = 0;
  virtual Answer<std::size_t> PruneIds(const PruneScope& scope, std::size_t limit) = 0;
  // One a part, with the done ones of its ranges, or all.
  virtual Answer<PositionMemory::Rows> ReadPositions(const Parts& parts) = 0;
  // Takes the parts' ranges out of what is done; how many offsets of them were.
  virtual Answer<std::size_t> TakeBack(const Parts& parts) = 0;

  // `output`: its key in the pipeline file; `where`: the database.
  [[nodiscard]] Answer<void> CheckShape(std::string_view output, const std::string& where) const;
  // rows_, from these items.
  Answer<void> FillRows(const std::vector<WriteItem>& items, Outcomes& outcomes, CellTypes* cells,
                        const std::string& where);
  // By position, before a transaction of these parts: whether their logs are those that their rows
  // know.
  Answer<void> CheckLogs(const std::vector<WriteItem>& items, const Parts& parts);
  // Whether the database that was connected still has what it had acknowledged. `same`: it has been
  // there all the time, so somebody deleted what is missing; `how`: what became of it, or "".
  Answer<void> CheckLostCommits(bool same, const std::string& where, std::string_view how);

  const std::string pipeline_;
  const std::string worker_;
  const OutputTerms terms_;
  const std::function<locking::Now()> clock_;
  LostCommitDetector lost_commits_;  // by id
  PositionMemory memory_;            // by position
  const tl::expected<RowShape, RowProblem> shape_;
  BatchRows rows_;

 private:
  Answer<std::optional<LostCommits>> FindLostCommits();

  const std::size_t max_records_;
};

}  // namespace fencepost::consumer
