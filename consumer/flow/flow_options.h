// What a flow is made for, and what it asks its host to do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consumer/flow/ports/ports.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/required_parts.h"
#include "consumer/record/dead_letter.h"
#include "consumer/record/identity.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

struct FlowOptions {
  std::string pipeline;
  std::string group;              // of Kafka
  std::string handler_kind;       // http, exec, jq, take, custom; empty: none
  std::string output_system;      // postgresql, mysql, sqlite, kafka, file, stdout
  std::string dead_letter_topic;  // empty: none
  TraceOptions traces;
  IdentityRule identity;
  Order order = Order::kKey;
  OnBad on_id_conflict = OnBad::kStop;
  OnBad on_bad_record = OnBad::kStop;
  Finality finality = Finality::kLedger;
  HandlerOptions handler;
  std::vector<RequiredPart> required;  // before a handler that may have effects is called
  Tuning tuning;
  Millis handler_timeout{5000};
  bool served = false;         // the handler's service has done a record before
  bool dead_letters = false;   // there is a topic for them
  bool letters_apart = false;  // with a Kafka transaction: they are published, and not in it
  std::size_t max_consecutive = kMostInARow;        // bad ones, while nothing takes effect; 0: any
  std::size_t max_in_flight = 4096;                 // unfinished records
  std::uint64_t max_in_flight_bytes = 64ull << 20;  // held by them: records, values, dead letters
  std::size_t max_finished_behind = 100'000;        // an unfinished record, in one partition
  Millis hold_after{500};  // a partition that holds more than its share for so long is paused
  Millis lock_wait{30'000};
  Millis remember_done{300'000};  // without a ledger: how long a DONE mark is kept
  std::int64_t block = 1;         // offsets that share a lock unit (LockBlock)
  // No ledger row that another worker writes meanwhile is pruned for so long: what was found out
  // without a lease holds until then (ProceedUnlocked), and what the group has confirmed
  // (OwnershipIsFresh) for half of it. nullopt: for ever.
  std::optional<Millis> ledger_row_lifetime;
  // A transaction that was sent and not answered begins within this time, or never. (One that has
  // begun holds its ledger rows: another of the same records waits for it.)
  Millis transaction_lasts{30'000};
  Millis commit_interval{1000};
  Millis stall_after{300'000};
  std::size_t write_batch = 500;  // records a transaction
  std::size_t writes_out = 2;     // transactions handed to the output at a time
  Millis linger{0};  // a Kafka transaction waits so long for more records, unless it is full
};
FlowOptions FlowOptionsOf(const PipelineOptions& options);

struct FlowActions {
  std::vector<PartitionIndex> pause;
  std::vector<PartitionIndex> resume;
  std::vector<PartitionOffset> commit;
  std::vector<std::unique_ptr<LookupBatch>> lookups;
  std::vector<HandlerCall> calls;
  std::vector<std::uint64_t> cancels;    // of calls; each is still answered
  std::vector<std::uint64_t> withdraws;  // … where they have not gone out yet
  std::vector<std::unique_ptr<WriteBatch>> writes;
  std::vector<DeadLetter> dead_letters;
  std::vector<std::uint64_t> dropped_letters;  // by id: handed out, and now another worker's
  std::optional<std::vector<PartitionOffset>> drained;  // the answer to OnRevoked
  // Partitions that have caught up with the end they had when they were assigned, and how far the
  // group has committed them: of these the ledger may be pruned (PruneScope::committed).
  std::optional<std::vector<SourceOffset>> prunable;
  std::optional<Error> stop;  // drain and end the worker with this error (exit 1)
};

}  // namespace fencepost::consumer
