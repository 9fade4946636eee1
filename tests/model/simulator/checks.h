// The invariants of locking/PROTOCOL.md, by their numbers, looked at whenever something happens.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/record.h"
#include "locking/core/lock_core.h"
#include "tests/model/simulator/ledger.h"
#include "tests/support/node_model.h"

namespace fencepost::simulator {

class Process;
class SimWorker;
class World;
struct Log;
struct SimNode;

class Checks {
 public:
  explicit Checks(World& world) : world_(world) {}

  void OnSent(const Process& process, const locking::Op& op);
  void OnOperation(SimNode& node, const Process& process, const locking::Op& op,
                   const testing::NodeModel::Unit& before, const testing::NodeModel::Unit& after,
                   const locking::Reply& reply);
  void OnForgot(const SimNode& node);  // wiped, restarted, or its clock stepped
  void OnLockEvent(SimWorker& worker, const locking::LockEvent& event, std::string_view name);
  void OnExtended(SimWorker& worker, locking::LockId lock);
  void OnStep(SimWorker& worker);
  void OnBatch(const std::vector<LedgerItem>& items);
  void OnCommit(const Log& log, int partition, consumer::Offset next);
  void AtTheEnd();

 private:
  struct Lease {
    int worker;
    int life;
    locking::LockId lock;
    locking::Token token;
  };

  void CheckPromise(SimWorker& worker, const Lease& lease, const std::string& name);
  void CheckAlone(SimWorker& worker, const Lease& lease, const std::string& name);
  void CheckNothingLeft();
  [[nodiscard]] bool Held(const Lease& lease) const;

  World& world_;
  std::map<std::string, std::vector<Lease>, std::less<>> leases_;
  std::vector<std::map<std::string, locking::Token, std::less<>>> granted_;  // by node
  std::map<locking::Nonce, std::pair<int, int>> drawn_;                      // worker, life
  std::map<std::pair<int, locking::Token>, bool> lost_;                      // worker, token
};

}  // namespace fencepost::simulator
