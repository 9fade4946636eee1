// Broker: dead letters that are published again, with the ids, places and times of their originals.
#include <algorithm>

#include "tests/model/simulator/broker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::PartitionIndex;

namespace header = consumer::dead_letter_header;

LogRecord Broker::ReplayOf(const consumer::DeadLetter& letter) {
  const consumer::Record& record = letter.record;
  const consumer::ReplayOrigin origin = letter.origin.value_or(consumer::ReplayOrigin{
      .partition = letter.where.partition, .offset = record.offset, .timestamp = record.timestamp});
  LogRecord again;
  again.key = consumer::FindHeader(record, "row").value_or("");
  again.keyless = !record.key;
  again.value = record.value.value_or("");
  again.header_id = consumer::FindHeader(record, "id").value_or("");
  again.record_id = letter.record_id;
  again.made = origin.timestamp.value_or(Millis(0));
  again.headers = {{std::string(header::kRecordId), letter.record_id},
                   {std::string(header::kTopic), letter.where.topic},
                   {std::string(header::kPartition), std::to_string(origin.partition)},
                   {std::string(header::kOffset), std::to_string(origin.offset)},
                   {std::string(header::kTimestamp),
                    std::to_string(std::chrono::floor<Millis>(again.made).count())}};
  return again;
}

// Mostly the ledger is asked before, and what has taken effect is refused; but that may change
// until the replay is read. Newer changes of its row are not looked for: its fence must hold.
void Broker::Replay() {
  Random& random = world_.random;
  if (letters_.empty()) return;
  const auto picked = letters_.begin() + random.Below(static_cast<int>(letters_.size()));
  LogRecord again = *picked;
  if (random.Chance(700)) letters_.erase(picked);
  const Ledger::Row* const row = world_.ledger.Find(again.record_id);
  if (row != nullptr && row->token != locking::Token() && random.Chance(700)) return;
  const auto partition = static_cast<PartitionIndex>(random.Below(static_cast<int>(shared_out_)));
  Log& log = logs[partition];
  if (log.records.size() == log.records.capacity()) return;
  const Nanos now = world_.time.now();
  again.offset = log.records.empty() ? log.first : log.records.back().next;
  again.next = again.offset + 1;
  again.at = log.records.empty() ? now : std::max(now, log.records.back().at);
  again.source = consumer::SourceText({kTopic, static_cast<std::int32_t>(partition)}, again.offset);
  again.doubtful = world_.plan.conflicts > 0;
  world_.Strike(Fault::kReplays);
  world_.Note("the dead letter of {} is replayed as {}", again.record_id, again.source);
  log.records.push_back(again);
  world_.checks.OnSentRecord(again, ChainOf(partition, again), static_cast<int>(partition), 0);
  TellOfLogs(false);
}

}  // namespace fencepost::simulator
