// A worker's connection to the output: the shipped LedgerOutput over the simulated table, for what
// it remembers of its commits and looks for whenever it connects. The transactions themselves take
// their time, and are SimWriter's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "consumer/outputs/positions/ledger_output.h"

namespace fencepost::simulator {

class Process;
class World;

class SimOutput final : public consumer::LedgerOutput {
 public:
  SimOutput(World& world, const Process& process);

  // A new connection. The error: commits are lost, and this worker can never write again.
  tl::expected<void, consumer::OutputError> Prepare() override;
  // A transaction was answered.
  void Remember(const std::vector<consumer::WriteItem>& items,
                const std::vector<consumer::WriteOutcome>& outcomes);
  tl::expected<std::vector<consumer::WriteOutcome>, consumer::OutputError> Write(
      const consumer::WriteRequest& request) override;  // not asked
  void Interrupt() override {}

 protected:
  Answer<void> PrepareIfNeedBe() override { return {}; }
  Answer<Entries> LookUpIds(const std::vector<std::string>& ids) override;
  Answer<consumer::PositionMemory::Rows> ReadPositions(const Parts& parts) override;
  Answer<std::size_t> PruneIds(const consumer::PruneScope& scope, std::size_t limit) override;
  // Nobody takes anything back here.
  Answer<std::size_t> ForgetIds(const std::vector<std::string>& ids) override;
  Answer<std::size_t> TakeBack(const Parts& parts) override;

 private:
  World& world_;
};

}  // namespace fencepost::simulator
