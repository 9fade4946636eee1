// Kafka, as far as one consumer group sees it: partitions with holes, a coordinator that revokes,
// waits, assigns and kicks out who is silent, and commits that count only for the current
// generation.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "consumer/kafka/source.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimConsumer;
class World;

struct LogRecord {
  consumer::Offset offset = 0;
  consumer::Offset next = 0;  // of the record after it, or where the partition ends
  Nanos at{0};                // when it can be read
  std::string header_id;
  std::string key;
  std::string value;
  std::string record_id;  // as the worker will know it
};

struct Log {
  std::vector<LogRecord> records;
  consumer::Offset committed = 0;

  [[nodiscard]] std::size_t Visible(Nanos now) const;
  [[nodiscard]] consumer::Offset End(Nanos now) const;
};

class Broker {
 public:
  explicit Broker(World& world) : world_(world) {}
  void Fill();

  // --- from the workers; each arrives at the coordinator after a while -------------------------
  void Join(int worker, int life);
  void Rejoin(int worker, int life, int generation,
              const std::vector<consumer::PartitionOffset>& offsets);
  void Leave(int worker, int life, int generation,
             const std::vector<consumer::PartitionOffset>& offsets);
  bool Commit(int worker, int life, int generation,
              const std::vector<consumer::PartitionOffset>& offsets);

  // --- from the world --------------------------------------------------------------------------
  void Kick(int worker, int life);
  void Rebalance();
  [[nodiscard]] bool Finished() const;  // everything is committed to the end
  [[nodiscard]] std::string Lag() const;

  std::vector<Log> logs;

 private:
  struct Member {
    bool answered = false;
    int generation = 0;  // 0: new, nothing to give back
    Nanos told_at{0};
  };
  using Name = std::pair<int, int>;

  void TryComplete();
  void Send(const Name& name, Member& member, std::function<void(SimConsumer&)> message);
  void SendKicked(const Name& name);

  World& world_;
  std::map<Name, Member> members_;
  int generation_ = 0;
  int round_ = 0;
  bool rebalancing_ = false;
  bool planned_ = false;
};

}  // namespace fencepost::simulator
