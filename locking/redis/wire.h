// How a batch of operations becomes one script call and its answer becomes replies. No sockets.
//
// Request: EVALSHA sha (1+n) fencepost::sentinel NAME… COMMON ARG…, one fixed-width ARG string a
// name, so that a script takes it apart by position. Answer: one bulk string: a header (13 digits
// node TIME in ms, then 'A' active or 'Q' quarantined), then for each name a code letter and that
// code's fixed-width fields. One string instead of an array: a reply costs no allocation a name. A
// node without its sentinel, or with one that is still forming, answers the error NOSENTINEL.
//
// COMMON is max_skew M. Then by kind: a name's ARG, and its answers (letter, fields, meaning).
//   acquire   T N ttl M
//     G kGranted   T kGrantedTakeover   C T rest M kContended   S T kStale   D T C rest M kDone
//     A kRefusedAhead   B kRefusedBehind   L kRefusedTtl
//   fill      T N ttl M
//     I kFilled   C T rest M kContended   D T C rest M kDone
//   extend    N ttl M
//     E kExtended   X kExpired   O T kStolen   D T C rest M kDone
//   abort, release   N ttl M
//     F kFreed   X kExpired (an own lock past its deadline is made FREE all the same)
//     O T kStolen (another's, or marked DONE)
//   done      T N remember_done M C
//     M kMarked   N kMarkedLate   Y T kAlreadyDone   Z T C kConflict
//   forget    ttl M
//     F kFreed   X kExpired (neither DONE nor held)   C T rest M kContended
//   inspect   ttl M (unused)
//     C T rest M kContended (held)   D T C rest M kDone   S T kStale (free)   X kExpired (absent)
//   any
//     ? kError (the key holds something that is not a lock; left untouched)
// Durations outside 0 to 10^12 - 1 ms are cut to it.
//
// Values stored at a lock's key, fixed-width (M ms digits, 13; T token digits, 19; N nonce hex, 32;
// C crc hex, 8):
//   H T N M T   held: token, nonce, deadline, floor        F T M   free: floor, deadline
//   D T C       done: token, crc
// Physical expiry: held and free at deadline + 2 * max_skew; done after remember_done.
//
// Pure functions; any thread.
#pragma once

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
  std::string_view text;
  std::string sha;
};
// The texts as they stand in their files; defined by the build (scripts/embed.cmake).
struct EmbeddedScript {
  std::string_view name;
  std::string_view text;
};
std::span<const EmbeddedScript> EmbeddedScripts();

const Script& ScriptFor(OpKind kind);
const Script& SentinelWriteScript();
std::span<const Script* const> AllScripts();

// Appends to `out` the RESP command that applies `ops` (all of one kind, at most kMaxBatch).
void FormatCall(OpKind kind, std::span<const Op> ops, const LockOptions& options, std::string& out);

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
// followed by the sentinel that stands there afterwards; nothing follows where none stands there
// (one was expected, and the node was wiped).
struct SentinelWrite;
void FormatSentinelWrite(const SentinelWrite& write, std::string& out);
struct SentinelAnswer {
  WallTime node_time;
  std::optional<std::string> current;
};
tl::expected<SentinelAnswer, std::string> ParseSentinelWrite(std::string_view payload);

}  // namespace fencepost::locking
