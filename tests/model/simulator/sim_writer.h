// A worker's output thread, as consumer/outputs/writer.h: one thing at a time, lookups first, and
// each batch by the shipped WriteRetry. A transaction whose answer is lost is written again, and
// the first may still happen after all. A connection that broke, or may have, is made again, and
// SimOutput looks what the output is then. One without a ledger has no such doubts: a line is
// there, or the file was away.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "consumer/flow/flow.h"
#include "consumer/outputs/write_retry.h"
#include "consumer/outputs/writer_queue.h"
#include "tests/model/simulator/effects.h"
#include "tests/model/simulator/ledger.h"
#include "tests/model/simulator/plan.h"
#include "tests/model/simulator/sim_output.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimWorker;
class World;

class SimWriter {
 public:
  SimWriter(World& world, SimWorker& worker);
  void Write(std::unique_ptr<consumer::WriteBatch> batch);
  void LookUp(std::unique_ptr<consumer::LookupBatch> lookup);
  // Between two writes.
  void SetPrunable(std::vector<consumer::SourceOffset> committed);
  void Stop();  // nothing more is sent, and nothing answered
  [[nodiscard]] bool refuses_all() const { return refuses_all_; }  // as retry_ told last

 private:
  using Item = OutputItem;

  static constexpr std::size_t kMostRecords = 500;

  void Next();
  void NextBySelf();
  void Begin();
  void Go();
  void Attempt(std::vector<std::size_t> places, bool apart);
  void Ask();
  void AskAgainLater();
  static Mood MoodNow(World& world);
  static Mood StruckMood(World& world);  // and it counts as trouble
  static Ledger::Outcomes Happen(World& world, const std::vector<Item>& items, By by,
                                 PositionWrite* positions);
  static std::vector<consumer::WriteOutcome> Append(const std::vector<Item>& items);
  [[nodiscard]] bool HasLedger() const;
  // On a connection, a new one if need be.
  template <typename Then>
  void Connected(int attempt, Then then);
  void OnConnecting(int attempt);
  void Send(int attempt, const std::vector<std::size_t>& places);
  // As Send, for those that are refused among them.
  void Search(int attempt, const std::vector<std::size_t>& places);
  void SearchNow(int attempt, const std::vector<std::size_t>& places, SimOutput::Terms terms);
  void Question(int attempt);
  void OnFound(int attempt, std::uint64_t session,
               const std::vector<std::optional<consumer::LedgerEntry>>& entries);
  void OnRows(int attempt, std::uint64_t session, const consumer::PositionLookup& asked,
              const PositionTable::Rows& rows);
  void OnAnswer(int attempt, std::uint64_t session, const std::vector<std::size_t>& places,
                const Ledger::Outcomes& outcomes, const PositionWrite* positions);
  void OnBroken(int attempt);
  void CheckUse(std::uint64_t session);
  [[nodiscard]] std::vector<consumer::WriteItem> ItemsAt(
      const std::vector<std::size_t>& places) const;
  // False: it ends, or tries again.
  bool Remember(const std::vector<std::size_t>& places,
                const std::vector<consumer::WriteOutcome>& outcomes,
                const PositionWrite* positions);
  void Acknowledge(const std::vector<consumer::WriteItem>& items,
                   const std::vector<consumer::WriteOutcome>& outcomes);
  void OnRefusal(const consumer::OutputError& error);
  void End(const fencepost::Error& error);
  void OnNoAnswer(int attempt);
  void OnConflict(int attempt);
  void Fail(consumer::OutputError error);

  World& world_;
  SimWorker& worker_;
  consumer::WriteRetry retry_;
  consumer::WriterQueue queue_;
  std::unique_ptr<consumer::WriteBatch> batch_;
  std::unique_ptr<consumer::LookupBatch> lookup_;
  std::optional<consumer::LookupTry> asked_;  // of it
  std::vector<Item> items_;
  int attempt_ = 0;
  bool refuses_all_ = false;
  bool ended_ = false;  // it can never write again
  SimOutput output_;
  std::uint64_t session_;  // of the ledger, in which the connection was made; 0: there is none
  Nanos backoff_{0};
};

}  // namespace fencepost::simulator
