// What ONE lock node does, as plain C++ without Redis: the rules of the protocol
// (locking/PROTOCOL.md) written down a second time, independent of the Lua scripts.
// The simulator uses it as its nodes; tests/component/scripts compares it with a real node, reply
// by reply.
//
// It has no clock: the caller passes the node's own TIME into every call, and may let it step
// either way. Copies are independent nodes with the same memory. One thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "locking/core/ops.h"
#include "locking/core/options.h"
#include "locking/core/store/store.h"
#include "locking/redis/wire.h"

namespace fencepost::locking {

class NodeModel {
 public:
  enum class State { kAbsent, kHeld, kFree, kDone, kForeign };  // foreign: not a lock

  // What is stored at one name. Only the fields of its state mean something.
  struct Unit {
    State state = State::kAbsent;
    Token token;         // held, done
    Nonce nonce;         // held
    WallTime deadline;   // held
    Token floor;         // held, free
    ContentCrc crc = 0;  // done
    WallTime expires;    // the node forgets the name after this
    bool operator==(const Unit&) const = default;
  };

  // `run_id`: 40 characters, as INFO has it.
  explicit NodeModel(std::string run_id) : run_id_(std::move(run_id)) {}

  // One script call: a batch of operations of one kind. One reply an op, in order; all kNoSentinel,
  // and `header` untouched, where the sentinel is missing or forming. `header` may be null. Of
  // `options` only max_skew is used, as by the scripts.
  std::vector<Reply> Apply(OpKind kind, std::span<const Op> ops, const LockOptions& options,
                           WallTime node_now, CallHeader* header);
  // The same, appending to `replies`. `expiry_now`: the time by which keys expire; a Redis 7.0 node
  // takes it when the script starts, a moment before the script reads TIME.
  void Apply(OpKind kind, std::span<const Op> ops, const LockOptions& options, WallTime node_now,
             WallTime expiry_now, CallHeader* header, std::vector<Reply>& replies);

  // One acquire by plain commands (PROTOCOL.md, The plain path): an absent name is taken with the
  // client's `deadline`, whatever the sentinel; kError where it must not count. Else as Apply.
  Reply AcquirePlainly(const Op& op, const LockOptions& options, WallTime deadline,
                       WallTime node_now, CallHeader* header);

  // Compare-and-set of the sentinel. Returns what is there afterwards.
  std::optional<std::string> ApplySentinelWrite(const SentinelWrite& write, WallTime node_now);

  // Somebody else's value, of whatever type, at a lock's name, or none any more. It does not
  // expire.
  void PutForeign(std::string_view name);
  void Remove(std::string_view name);
  void RemoveSentinel();
  // A name that stands is forgotten at another time: the milliseconds in which a node's script runs
  // are no business of the model's.
  void SetExpiry(std::string_view name, WallTime expires);

  // FLUSHALL: forgets everything, the sentinel too.
  void Wipe();
  // The process restarts: another run_id, with its data (an append-only file) or without.
  void Restart(std::string run_id, bool keep_data);

  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] const std::optional<std::string>& sentinel() const { return sentinel_; }
  // The sentinel is there and complete: operations have an effect.
  [[nodiscard]] bool Complete() const { return complete_; }
  [[nodiscard]] bool Quarantined(WallTime node_now) const { return node_now < quarantine_until_; }

  // For invariants: what is stored at a name at this time; kAbsent where nothing does.
  [[nodiscard]] Unit Look(std::string_view name, WallTime node_now) const;
  // The holder, if the name is held and its deadline has not passed.
  [[nodiscard]] std::optional<Unit> Holder(std::string_view name, WallTime node_now) const;
  // Calls `visit(name, unit)` for every name that stands at this time, in no particular order.
  template <typename Visit>
  void ForEach(WallTime node_now, Visit visit) const {
    for (const auto& [name, unit] : units_) {
      if (node_now <= unit.expires) visit(std::string_view(name), unit);
    }
  }
  // Drops what has expired, so that long simulations stay small. Changes nothing that can be seen.
  void Purge(WallTime node_now);

  // The value as a node stores it (locking/redis/wire.h); empty for kAbsent, "?" for kForeign.
  [[nodiscard]] static std::string Encode(const Unit& unit);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  struct Call {
    WallTime now;
    Millis max_skew;
  };

  void SetSentinel(std::optional<std::string> text);
  void ApplyOne(const Op& op, const Call& call, Unit& unit, Reply& reply) const;
  void Acquire(const Op& op, const Call& call, Unit& unit, Reply& reply) const;

  std::string run_id_;
  std::unordered_map<std::string, Unit, Hash, std::equal_to<>> units_;
  std::optional<std::string> sentinel_;
  // Read from sentinel_ when it is written:
  bool complete_ = false;
  WallTime quarantine_until_{};
  Millis max_ttl_{0};
};

}  // namespace fencepost::locking
