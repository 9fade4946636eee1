// A worker's connection to the output: the shipped StepwiseOutput over the simulated table, for
// what it remembers of its commits and looks for whenever it connects, for all that it knows and
// does by position, and for the search of what a batch has that is refused (Search). The other
// transactions take their time, and are SimWriter's.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "consumer/outputs/ledger/stepwise_output.h"
#include "tests/model/simulator/ledger.h"
#include "tests/model/simulator/positions.h"

namespace fencepost::simulator {

class Process;
class World;

// A record to write.
struct OutputItem {
  LedgerItem row;
  std::string source;  // as the checks know it
  consumer::AssignmentEpoch epoch = 0;
};
OutputItem ItemOf(const World& world, const consumer::BatchRows& rows, std::size_t record);
// Two effects: a row a key, which the newest change has, and a row for each record that has one.
consumer::EffectShapes ShapesOfTables();
constexpr std::size_t kEffects = 2;

class SimOutput final : public consumer::StepwiseOutput {
 public:
  SimOutput(World& world, const Process& process);

  // By id: a transaction was answered.
  void Remember(const std::vector<consumer::WriteItem>& items,
                const std::vector<consumer::WriteOutcome>& outcomes);
  // By position: before a transaction of these items is sent, and once it was answered.
  tl::expected<std::shared_ptr<PositionWrite>, consumer::OutputError> OnSending(
      const std::vector<consumer::WriteItem>& items);
  tl::expected<void, consumer::OutputError> OnCommitted(const PositionWrite& write);
  // By position: the answer to a look-up, from the rows that were read for it.
  tl::expected<Entries, consumer::OutputError> AnswerFrom(const std::vector<std::string>& ids,
                                                          const consumer::PositionLookup& asked,
                                                          const PositionTable::Rows& rows);

  // WriteRequest::apart, at one moment.
  struct Terms {
    enum class End : std::uint8_t {
      kAnswered,
      kBreaks,  // the database is away amid the search
      kSilent,  // COMMIT is not answered,
      kLate     // and comes at `late`
    };
    End end = End::kAnswered;
    Nanos late{0};
    Mood mood = Mood::kUsual;
    By by{};
  };
  static constexpr std::string_view kUnanswered = "unanswered";  // code of its error
  tl::expected<Outcomes, consumer::OutputError> Search(const consumer::WriteRequest& request,
                                                       const Terms& terms);
  void Interrupt() override {}

 protected:
  // The error: commits are lost, and this worker can never write again.
  Answer<void> Connect() override;
  void Disconnect() override {}
  [[nodiscard]] bool Connected() const override { return true; }
  [[nodiscard]] std::string Where() const override { return "table"; }
  std::span<consumer::CellTypes* const> Cells() override { return {}; }
  Answer<Entries> LookUpIds(const std::vector<std::string>& ids) override;
  Answer<consumer::PositionMemory::Rows> ReadPositions(const Parts& parts) override;
  Answer<bool> FindsNewer() override { return false; }
  Answer<bool> HasTopic(const std::string& topic) override;                 // not asked
  Answer<std::size_t> ForgetIds(const std::vector<std::string>&) override;  // nor this, by id

  Answer<void> Begin() override;
  Answer<void> Commit() override;
  void RollBack() override { staged_ = {}; }
  Answer<void> Execute(const char* sql) override;
  Answer<Entries> LockIds(const std::vector<std::string>& ids) override;
  // A row is put with its record, in the place of what is there.
  Answer<void> InsertIds(const Records&) override { return {}; }
  Answer<std::size_t> DeleteNothingWritten(const std::vector<std::string>& ids) override {
    return ids.size();
  }
  Answer<consumer::PositionMemory::Rows> LockPositions(const Parts& parts) override;
  Answer<void> StorePositions(const Changes& changes) override;
  Answer<void> ForgetLetters(const consumer::PositionKey& key,
                             const consumer::PositionRange& range) override;
  [[nodiscard]] std::string Time() const override { return ""; }
  Answer<void> WriteEffects(const Records& fresh) override;
  Answer<std::size_t> ChangeRows(Change change, const Rows& rows) override;
  Answer<bool> FindsRow(const Row&) override { return false; }  // no row leaves a column out
  Answer<Rows> FindNewer(const Rows& rows) override;
  Rows RefusedOf(const Rows&) override { return {}; }
  Answer<void> VisitOldRows(std::chrono::seconds keep, const std::string& from, bool behind,
                            const std::function<bool(OldRow)>& visit) override;
  Answer<std::size_t> DeleteRows(const std::vector<OldRow>& rows) override;

 private:
  // Of the transaction that is open.
  struct Staged {
    std::vector<OutputItem> records;
    std::array<std::vector<LedgerItem>, kEffects> rows;  // by effect, of these records
    std::vector<std::pair<consumer::PositionKey, consumer::PositionRow>> positions;
  };
  static void Happen(World& world, const Staged& staged, By by);
  [[nodiscard]] bool FindsNewer(const LedgerItem& item) const;
  void CommitLate();

  World& world_;
  Terms terms_of_search_;
  Staged staged_, saved_;  // saved: at the savepoint
  bool waits_ = false;     // for another transaction that has ids of these records
};

}  // namespace fencepost::simulator
