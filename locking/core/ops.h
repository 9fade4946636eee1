// What travels between the core and one node: operations on lock units, and what a node said.
// The core never sees a socket; the driver (locking/redis) turns a batch of Ops into one script
// call each kind and answers EVERY Op with exactly one Reply, in any order, also when no node
// answered.
#pragma once

#include <cstdint>
#include <string_view>

#include "locking/base/types.h"

namespace fencepost::locking {

enum class OpKind : std::uint8_t {
  kExtend,
  kAcquire,
  kFill,
  kAbort,
  kRelease,
  kDone,
  kForget,
  kInspect,
};
inline constexpr int kOpKinds = 8;
// May leave a HELD of ours behind.
constexpr bool Creates(OpKind kind) { return kind == OpKind::kAcquire || kind == OpKind::kFill; }
// Begins or keeps a HELD: where it cannot go out at once, it fails, since the caller's time runs.
constexpr bool MustNotComeLate(OpKind kind) { return Creates(kind) || kind == OpKind::kExtend; }

inline constexpr std::size_t kMaxBatch = 512;  // keys a script call (500 take a node 3 to 4 ms)

// One operation on one lock unit at one node. `name` points into the core and stays good until the
// op's reply was handed back.
struct Op {
  OpKind kind;
  LockId lock;
  std::uint16_t round = 0;  // echoed in the reply
  std::string_view name;    // the whole key: fencepost:{NAMESPACE}:ID
  Token token;
  Nonce nonce;
  Millis ttl{0};       // acquire, extend, fill, abort, release; for done: remember_done
  ContentCrc crc = 0;  // done
};

// Reply codes by operation. Codes from kTimeout on are made by the driver: no node said them.
enum class ReplyCode : std::uint8_t {
  kGranted,          // acquire: held by (T, N) now, or already (a resend)
  kGrantedTakeover,  // acquire: granted, and another's deadline had passed
  kContended,        // acquire, fill: held by another; token = its token, rest = its rest;
                     // inspect: held (rest 0: past its deadline)
  kStale,            // acquire: T <= floor; token = the floor; inspect: FREE
  kRefusedAhead,     // acquire: T is beyond the node's TIME + max_skew
  kRefusedBehind,    // acquire: T is before the node's TIME - max_skew
  kRefusedTtl,       // acquire: ttl > the store's max_ttl
  kDone,             // acquire, fill, extend, inspect: DONE; token and crc say whose and of what
  kExtended,         // extend
  kFilled,           // fill: held by (T, N) now
  kFreed,            // abort, release, forget: was ours (forget: was DONE), is FREE now
  kExpired,          // abort, release, extend: absent, FREE, or ours but past its deadline;
                     // forget: neither DONE nor held; inspect: absent
  kStolen,           // abort, release, extend: another's; left untouched
  kMarked,           // done: DONE now, and the caller was the holder
  kMarkedLate,       // done: DONE now, but the caller was no longer the holder
  kAlreadyDone,      // done: was DONE with the same crc
  kConflict,         // done: was DONE with another crc; left untouched; crc = the stored one
  kNoSentinel,       // any: the node was wiped; counts as nothing
  kForeign,          // any: the key holds something that is no lock; left alone, counts as nothing
  kTimeout,          // no answer within the call's timeout
  kConnection,       // not connected, or the connection broke
  kError,            // the node refused the call (oom, readonly, auth, …; see the observer)
};
inline constexpr std::size_t kReplyCodes = static_cast<std::size_t>(ReplyCode::kError) + 1;
constexpr bool NodeAnswered(ReplyCode code) { return code < ReplyCode::kNoSentinel; }

struct Reply {
  LockId lock;
  std::uint16_t round = 0;
  OpKind kind = OpKind::kAcquire;
  ReplyCode code = ReplyCode::kTimeout;
  bool quarantined = false;  // the node was in quarantine when it said so
  Token token;
  ContentCrc crc = 0;
  Millis rest{0};  // kContended: until the holder's deadline; kDone: until it is forgotten
};

inline Reply ReplyTo(const Op& op, ReplyCode code) {
  Reply reply;
  reply.lock = op.lock;
  reply.round = op.round;
  reply.kind = op.kind;
  reply.code = code;
  return reply;
}

// What every script call tells about the node itself.
struct CallInfo {
  Instant sent_at;
  Instant received_at;
  WallTime node_time;  // TIME, read inside the script
};

}  // namespace fencepost::locking
