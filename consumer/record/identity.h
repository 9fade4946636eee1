// Who a record is: its id, as the business means it, and the checksum of its content.
// Ids are bytes; one that is not valid UTF-8, holds control characters (bytes below 0x20, 0x7f), or
// is longer than 512 bytes is stored as "sha256:HEX" everywhere. Not thread-safe (holds an
// Evaluator).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/record/record.h"
#include "consumer/record/selector.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

struct Identity {
  std::string id;               // as stored
  locking::ContentCrc crc = 0;  // CRC-32 of key, value and headers (without those that a
                                // dead letter adds); for position the timestamp too
};

class Identifier {
 public:
  // `cluster_id` is the Kafka cluster's id, used for position. With `accept_replay_ids` the header
  // fencepost-record-id, where a record has it, is its id.
  Identifier(Selector record_id, std::string cluster_id, bool accept_replay_ids = false);
  // Fills `out` (its strings keep their capacity). Error: why the record has no id, one line.
  tl::expected<void, std::string> Identify(const Record& record, const TopicPartition& where,
                                           Identity& out);

 private:
  [[nodiscard]] std::optional<std::string_view> ReplayId(const Record& record) const;

  Selector selector_;
  std::string cluster_id_;
  bool accept_replay_ids_;
  Evaluator evaluator_;
};

// The stored form of an id given by a person or a header.
std::string StoredId(std::string_view id);
// The whole lock key: fencepost:{PIPELINE}:ID
std::string LockName(std::string_view pipeline, std::string_view stored_id);

}  // namespace fencepost::consumer
