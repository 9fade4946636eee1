// A worker's connection to the output: the shipped LedgerOutput over the simulated table, for what
// it remembers of its commits and looks for whenever it connects, and for all that it knows and
// does by position. The transactions themselves take their time, and are SimWriter's.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "consumer/outputs/ledger/ledger_output.h"
#include "tests/model/simulator/positions.h"

namespace fencepost::simulator {

class Process;
class World;

class SimOutput final : public consumer::LedgerOutput {
 public:
  SimOutput(World& world, const Process& process);

  // By id: a transaction was answered.
  void Remember(const std::vector<consumer::WriteItem>& items,
                const std::vector<consumer::WriteOutcome>& outcomes);
  // By position: before a transaction of these items is sent, and once it was answered.
  tl::expected<std::shared_ptr<PositionWrite>, consumer::OutputError> Begin(
      const std::vector<consumer::WriteItem>& items);
  tl::expected<void, consumer::OutputError> OnCommitted(const PositionWrite& write);
  // By position: the answer to a look-up, from the rows that were read for it.
  tl::expected<Entries, consumer::OutputError> AnswerFrom(const consumer::PositionLookup& asked,
                                                          const PositionTable::Rows& rows);
  void Interrupt() override {}

 protected:
  // The error: commits are lost, and this worker can never write again.
  Answer<void> Connect() override;
  void Disconnect() override {}
  [[nodiscard]] bool Connected() const override { return true; }
  [[nodiscard]] std::string Where() const override { return "table"; }
  consumer::CellTypes* Cells() override { return nullptr; }
  Answer<void> WriteRows(Outcomes& outcomes) override;     // not asked
  Answer<Known> BeginApart() override { return Known(); }  // likewise
  Answer<Refusals> WriteParts(const std::vector<Records>& /*parts*/) override { return Refusals(); }
  Answer<void> EndApart() override { return {}; }
  void RollBack() override {}
  Answer<bool> FindsNewer() override { return false; }
  Answer<bool> HasTopic(const std::string& topic) override;  // likewise
  Answer<Entries> LookUpIds(const std::vector<std::string>& ids) override;
  Answer<consumer::PositionMemory::Rows> ReadPositions(const Parts& parts) override;
  Answer<std::size_t> PruneIds(const consumer::PruneScope& scope, std::size_t limit) override;
  // Nobody does so by id.
  Answer<std::size_t> ForgetIds(const std::vector<std::string>& ids) override;
  Answer<std::size_t> TakeBack(const Parts& parts) override;

 private:
  World& world_;
};

}  // namespace fencepost::simulator
