// Kafka, as far as one consumer group sees it: partitions with holes, whose oldest records may be
// deleted, a coordinator that revokes, waits, assigns and kicks out who is silent, and commits that
// count only for the current generation. And transactions (broker_transactions.cc): their offsets
// are taken for the current generation only, and until they have ended nobody is told where to go
// on; a producer whose successor has started, or that was too slow, is fenced.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "consumer/kafka/source/source.h"
#include "consumer/outputs/output.h"
#include "consumer/record/dead_letter.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimConsumer;
class World;

struct LogRecord {
  consumer::Offset offset = 0;
  consumer::Offset next = 0;  // of the record after it, or where the partition ends
  Nanos at{0};                // when it can be read
  std::string header_id;
  std::string key;        // and the row of the table, by the header "row"
  bool keyless = false;   // it has that header alone
  bool filtered = false;  // `when` leaves it out
  std::string value;
  std::string record_id;  // as the worker will know it; empty: it has none
  std::string source;
  std::vector<consumer::OwnedHeader> headers;  // of a replay
  Nanos made{0};                               // it, or what it is the replay of
  bool doubtful = false;  // other records have its id, and some of them other content
  bool gone = false;      // deleted
};

struct Log {
  std::vector<LogRecord> records;  // the deleted ones, too
  consumer::Offset first = 0;      // the oldest one that can be read
  std::vector<LogRecord> later;    // once it is another one
  std::vector<LogRecord> former;   // since then: those that were read lie in it
  std::size_t kept = 0;            // of its records are those of the first
  int version = 0;                 // which one it is
  consumer::Offset committed = 0;
  bool any_committed = false;
  std::string metadata;  // that was committed with the offset

  [[nodiscard]] std::size_t Visible(Nanos now) const;
  // The place in `records` to read on from.
  [[nodiscard]] std::size_t PlaceOf(consumer::Offset offset) const;
  [[nodiscard]] consumer::Offset End(Nanos now) const;
};

enum class TransactionState : std::uint8_t { kOpen, kCommitted, kAborted, kRefused, kFenced };

// A transaction, by the life of the worker that made it (its transactional.id is the worker's).
struct TransactionName {
  int worker = 0;
  int life = 0;
  std::uint64_t number = 0;
  auto operator<=>(const TransactionName&) const = default;
};

struct Produced {
  std::string id;
  std::string source;
  consumer::PartitionIndex partition = 0;
  consumer::Offset offset = 0;
  bool letter = false;
  bool no_output = false;
};

// To be committed; `metadata`: as many, or none.
struct ToCommit {
  std::vector<consumer::PartitionOffset> offsets;
  std::vector<std::string> metadata;
};

struct StartAt {
  consumer::PartitionIndex partition = 0;
  consumer::Offset offset = 0;
  std::string metadata;
};

class Broker {
 public:
  explicit Broker(World& world) : world_(world) {}
  void Fill();

  // --- from the workers; each arrives at the coordinator after a while -------------------------
  void Join(int worker, int life, int join);
  void Rejoin(int worker, int life, int join, int generation, const ToCommit& last);
  void Leave(int worker, int life, int generation, const ToCommit& last);
  bool Commit(int worker, int life, int generation, const ToCommit& asked);

  // --- transactions ----------------------------------------------------------------------------
  void StartProducer(int worker, int life);  // aborts what its predecessor left open
  // kOpen, kRefused (the group has gone on) or kFenced.
  TransactionState AddOffsets(const TransactionName& name, int generation,
                              const std::vector<consumer::PartitionOffset>& offsets);
  // kCommitted, kAborted or kFenced; the same again for a transaction that has ended.
  TransactionState EndTransaction(const TransactionName& name, const std::vector<Produced>& items);

  // --- from the world --------------------------------------------------------------------------
  void Kick(int worker, int life);
  void Rebalance();
  void AddPartitions();
  void DeleteOldest();  // retention, or DeleteRecords
  void Replace();       // the logs become others
  void Replay();        // some dead letter is published again, as `dlq replay` does
  [[nodiscard]] bool Empty() const { return members_.empty(); }
  void SetOffset(consumer::PartitionIndex partition, consumer::Offset next);  // of an empty group
  [[nodiscard]] bool AnyTransactionOpen() const { return !open_.empty(); }
  [[nodiscard]] bool Finished() const;  // everything is committed to the end
  void BeginTheRest();                  // where all was deleted before anybody began: at the end
  [[nodiscard]] std::string Lag() const;

  // --- records ---------------------------------------------------------------------------------
  // What tells it from all others, those of other logs at its offset, too.
  [[nodiscard]] std::string SourceOf(const consumer::TopicPartition& where,
                                     const consumer::Record& record) const;
  static LogRecord ReplayOf(const consumer::DeadLetter& letter);
  void OnLetter(const LogRecord& replay) { letters_.push_back(replay); }
  static consumer::Record Read(const LogRecord& from, consumer::PartitionIndex partition);
  // What can be read at these offsets, as the ledger by position asks it.
  [[nodiscard]] consumer::LogState Look(const consumer::TopicPartition& where,
                                        const std::vector<consumer::Offset>& offsets) const;

  std::vector<Log> logs;

 private:
  struct Member {
    bool answered = false;
    int join = 0;        // the worker's number of it
    int generation = 0;  // 0: new, nothing to give back
    std::vector<consumer::PartitionIndex> partitions;
    Nanos told_at{0};
  };
  using Name = std::pair<int, int>;

  struct Open {
    TransactionName name;
    int generation = 0;
    std::vector<consumer::PartitionOffset> offsets;
  };

  bool ComeBack(int worker, int life, int join);
  void Assign(const Name& name, Member& member);
  void LoseOffsets();
  void DecideStarts();
  void Begin(consumer::PartitionIndex partition);
  void TellOfLogs(bool others);
  void KeepBeginnings();
  [[nodiscard]] std::string ChainOf(consumer::PartitionIndex partition,
                                    const LogRecord& record) const;
  [[nodiscard]] consumer::Offset PassedUnseen(consumer::PartitionIndex partition) const;
  void TryComplete();
  void Close(int worker);
  [[nodiscard]] bool Current(int worker, int life, int generation) const;
  void Send(const Name& name, Member& member, std::function<void(SimConsumer&)> message);
  void SendKicked(const Name& name, int join);

  World& world_;
  std::map<Name, Member> members_;
  std::map<int, int> producers_;  // worker → the life whose producer may write
  std::map<int, Open> open_;      // by worker
  std::map<TransactionName, TransactionState> ended_;
  std::vector<LogRecord> letters_;  // published: their replays
  std::size_t shared_out_ = 0;      // of the partitions: there are to be more
  int generation_ = 0;
  int round_ = 0;
  bool rebalancing_ = false;
  bool planned_ = false;
};

}  // namespace fencepost::simulator
