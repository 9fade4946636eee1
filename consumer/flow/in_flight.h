// One delivered record on its way, as the flow keeps it. Plain data; the engine thread's, but for
// what the output reads while it is being written.
#pragma once

#include <cstdint>
#include <string>

#include "consumer/flow/identity.h"
#include "consumer/record.h"
#include "locking/core/types.h"

namespace fencepost::consumer {

enum class Stage : std::uint8_t {
  kUnused,
  kQueued,   // waits for its place in the chain (or for Acquire to be worth it)
  kTwin,     // waits for another record here with the same id
  kLocking,  // the lock is being acquired
  kGranted,  // leased, but a record before it in the chain is still at its first round
  kReady,    // leased or hinted, everything before it in the chain too: may be written
  kWriting,  // handed to the output
  kBlocked,  // bad record or id conflict, and the pipeline stops: holds the watermark
  kFinished,
};

struct InFlight {
  std::uint32_t index = 0;  // in the pool
  Stage stage = Stage::kUnused;
  bool hinted = false;  // the name is DONE: no lease, the ledger decides
  bool leased = false;
  bool lease_lost = false;    // while it was being written
  bool round_failed = false;  // its first round is over, without a lease
  bool owner = false;         // of its id, among the records here
  std::uint32_t ready_ticket = 0;
  Record record;
  Identity identity;
  void* partition = nullptr;  // Flow::Partition
  const TopicPartition* where = nullptr;
  locking::LockId lock;
  locking::Token token;
  InFlight* chain_before = nullptr;  // the unfinished record before it in its order chain
  InFlight* chain_after = nullptr;
  std::string chain_key;           // order: key
  InFlight* twin_after = nullptr;  // list of those who wait for the owner of the id
};

struct ReadyEntry {
  InFlight* record = nullptr;
  std::uint32_t ticket = 0;  // stale when it differs from the record's
};

}  // namespace fencepost::consumer
