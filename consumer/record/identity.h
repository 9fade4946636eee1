// Who a record is: its id, as the business means it, and a checksum of its content.
// Ids are bytes; one that is not valid UTF-8, holds control characters (bytes below 0x20, 0x7f), or
// is longer than 512 bytes is stored as "sha256:HEX" everywhere, and only the selector record_id
// gives it as it is. Not thread-safe (holds an Evaluator).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/record/content.h"
#include "consumer/record/record.h"
#include "consumer/record/selector.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

struct Identity {
  std::string id;                      // as stored
  std::string whole;                   // where that is a digest: the id itself
  locking::ContentCrc crc = 0;         // of its content
  bool in_place = false;               // the id is the position where the record was read
  std::optional<ReplayOrigin> origin;  // of an accepted replay, where its headers say it
};

// What makes two records the same.
struct IdentityRule {
  // Of several, the id is their texts joined by '/', with '~' and '/' inside them as ~0 and ~1.
  std::vector<Selector> record_id = {Selector{}};  // position
  ContentRule content;                             // of a position always the whole record
  // The header fencepost-record-id, where a record has it, is its id.
  bool accept_replay_ids = false;

  [[nodiscard]] bool ByPosition() const {
    return record_id.front().kind == Selector::Kind::kPosition;
  }
};

class Identifier {
 public:
  // `cluster_id` is the Kafka cluster's id, used for position.
  Identifier(IdentityRule rule, std::string cluster_id);
  // Fills `out` (its strings keep their capacity). Error: why the record has no id, one line.
  tl::expected<void, std::string> Identify(const Record& record, const TopicPartition& where,
                                           Identity& out);
  [[nodiscard]] const std::string& cluster_id() const { return cluster_id_; }

 private:
  [[nodiscard]] std::optional<std::string_view> ReplayId(const Record& record) const;

  void AppendPosition(const TopicPartition& where, Offset offset, std::string& id);
  tl::expected<void, std::string> AppendParts(std::string& id);
  void FindWhole(Identity& out);

  IdentityRule rule_;
  ContentDigest content_;
  std::string cluster_id_;
  // record_id: position: all but the offset, of the partition that was asked for last.
  TopicPartition prefix_of_;
  std::string prefix_;
  Evaluator evaluator_;
  std::string part_;
};

// The stored form of an id given by a person or a header.
std::string StoredId(std::string_view id);
// The whole lock key: fencepost:{PIPELINE}:ID
std::string LockName(std::string_view pipeline, std::string_view stored_id);

}  // namespace fencepost::consumer
