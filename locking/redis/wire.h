// How a batch of operations becomes one script call and its answer becomes replies. No sockets.
//
// Request: EVALSHA sha (1+n) fencepost::sentinel NAME… COMMON ARG…, one fixed-width ARG string a
// name, so that a script takes it apart by position. Answer: one bulk string: a header (node TIME:
// seconds in 10 digits, then microseconds without leading zeros; 'A' active or 'Q' quarantined),
// then for each name a code letter and that code's fixed-width fields. One string instead of an
// array: a reply costs no allocation a name. A node without its sentinel, or with one that is still
// forming, answers the error NOSENTINEL.
//
// Fields: T token (16 hex digits), N nonce (16 bytes as they are), C crc (16 hex digits), E an
// instant (11 hex digits, ms since the Unix epoch), M a duration (13 decimal digits, ms; outside 0
// to 10^12 - 1 cut to it). Hex digits are lower case.
//
// COMMON is max_skew M, then the ttl M that all names of the call have; 13 dashes where they
// differ, and then each ARG ends in its own, [M]. A release under LockOptions::wake_up adds 'W':
// each name that is freed is published (channel = the key, empty message). Then by kind: a name's
// ARG, and its answers (letter, fields, meaning).
//   acquire   T N [M]
//     G kGranted   T kGrantedTakeover   C T rest M kContended   S T kStale   D T C rest M kDone
//     A kRefusedAhead   B kRefusedBehind   L kRefusedTtl
//   fill      T N [M]
//     I kFilled   C T rest M kContended   D T C rest M kDone
//   extend    N [M]
//     E kExtended   X kExpired   O T kStolen   D T C rest M kDone
//   abort, release   'F' T N; the ttl is unused
//     F kFreed   X kExpired (an own lock past its deadline is made FREE all the same)
//     O T kStolen (another's, or marked DONE)
//   done      'D' T C N [remember_done M, in the place of ttl]
//     M kMarked   N kMarkedLate   Y T kAlreadyDone   Z T C kConflict
//   forget    [M]
//     F kFreed   X kExpired (neither DONE nor held)   C T rest M kContended
//   inspect   nothing; the ttl is unused
//     C T rest M kContended (held)   D T C rest M kDone   S T kStale (free)   X kExpired (absent)
//   any
//     ? kForeign (the key holds something that is not a lock, of any type; left untouched)
//
// Values stored at a lock's key:
//   H E T N     held: deadline, token, nonce; the floor is the token
//   H E T N T   held, by a fill below the floor that ends it
//   F T         free: floor
//   D T C       done: token, crc
// A held value has 44 bytes, the most that Redis keeps in one piece with its header. Physical
// expiry: held at deadline + 2 * max_skew; free when the lock it came from would have expired, or
// ttl + 2 * max_skew after a forget; done after remember_done. Extend and fill, and done for at
// least max_ttl + 2 * max_skew, keep the existing expiry where it is later.
//
// Pure functions; any thread.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "locking/core/ops.h"
#include "locking/core/options.h"

namespace fencepost::locking {

// The script for a kind of operation: text (from locking/core/scripts/NAME.lua), SHA-1 in hex.
struct Script {
  std::string_view name;  // acquire, fill, extend, free (abort and release), done, forget,
                          // inspect, sentinel_write
  std::string text;
  std::string sha;
};

const Script& ScriptFor(OpKind kind);
const Script& ScriptNamed(std::string_view name);
std::span<const Script* const> AllScripts();

// Each of these appends to `out`, as RESP: a command; the beginning of a call, up to and with the
// sentinel's key, which counts as one of `keys`; one more key or argument of it.
void AppendCommand(std::initializer_list<std::string_view> words, std::string& out);
void AppendCallHead(const Script& script, std::size_t keys, std::size_t args, std::string& out);
void AppendBulk(std::string_view text, std::string& out);

// Appends to `out` the RESP command that applies `ops` (all of one kind, at most kMaxBatch).
void FormatCall(OpKind kind, std::span<const Op> ops, const LockOptions& options, std::string& out);

// The same for acquires as plain commands (plain_acquire.h), each with the deadline E = `from` +
// its ttl: SET NAME 'H' E T N, NX GET PXAT E + 2 * max_skew. Answer: nil where it was written, else
// the existing value. Behind the last one: GET of the sentinel, TIME.
void FormatPlainAcquires(std::span<const Op> ops, WallTime from, const LockOptions& options,
                         std::string& out);

struct CallHeader {
  WallTime node_time;
  bool quarantined = false;
};
// Parses the bulk string; appends one Reply an op to `replies`, in order. Error: the text is not
// what the script says (nothing is appended).
tl::expected<CallHeader, std::string> ParseCall(OpKind kind, std::span<const Op> ops,
                                                std::string_view payload,
                                                std::vector<Reply>& replies);

// The compare-and-set of the sentinel (store.h): EVALSHA of sentinel_write. Answer: "TIME(13)"
// followed by the node's sentinel afterwards; nothing follows where the node has none (one was
// expected, and the node was wiped).
struct SentinelWrite;
void FormatSentinelWrite(const SentinelWrite& write, std::string& out);
struct SentinelAnswer {
  WallTime node_time;
  std::optional<std::string> current;
};
tl::expected<SentinelAnswer, std::string> ParseSentinelWrite(std::string_view payload);

}  // namespace fencepost::locking
