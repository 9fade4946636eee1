// Acquires without a script (PROTOCOL.md, The plain path): names that are likely to be free are
// asked for by SET NX GET PXAT, with a deadline that the client reckons from what it knows of the
// node's clock; GET of the sentinel and TIME follow in the same write and judge what was granted.
// The node's CPU: two thirds to three quarters of what the script takes. What is not granted is the
// script's.
//
// One connection's; sans-IO; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "locking/core/ops.h"
#include "locking/core/options.h"
#include "locking/core/store/sentinel.h"
#include "locking/redis/wire.h"

struct redisReply;

namespace fencepost::locking {

class PlainAcquire {
 public:
  // --- what the connection learns of its node --------------------------------------------------
  void OnCall(const CallInfo& call);
  void OnSentinel(std::optional<std::string_view> text);  // nothing: there is none
  void Forget();                                          // the connection broke

  // --- a run of acquires -----------------------------------------------------------------------
  // May they be asked for in this way: the sentinel complete, the node's clock known well, and the
  // tokens and ttls far from what a node refuses. Else the script says more.
  [[nodiscard]] bool Suits(std::span<const Op> ops, const LockOptions& options, Now now);
  // Appends the commands; returns how many answers will come. Only after Suits.
  std::size_t Write(std::span<const Op> ops, const LockOptions& options, Now now, std::string& out);
  // The next answer. True: it was the last one.
  bool OnAnswer(const redisReply& reply);
  // So many answers may be to names yet; the next `nils` of them said that nothing was there.
  [[nodiscard]] std::size_t NamesLeft() const { return asked_ - std::min(answered_, asked_); }
  void OnNils(std::size_t nils);

  enum class Fate : std::uint8_t {
    kGranted,
    kAskScript,  // the name is not absent, or the node refused SET: nothing was written
    kLengthen,   // written, but its deadline is sooner than the script's would be
    kRefused,    // written, and must not count; the value may still exist
  };
  struct Judgement {
    std::string error;  // GET or TIME was not answered as Redis does; then nothing below
    bool no_sentinel = false;
    CallHeader header;
    std::vector<Fate> fates;  // one an op, in order
    std::string refusal;      // why one is kRefused
  };
  // After the last answer, of the same ops.
  [[nodiscard]] const Judgement& Judge(std::span<const Op> ops, const LockOptions& options);

 private:
  [[nodiscard]] WallTime NodeTime(Instant at) const;
  [[nodiscard]] Fate Judge(const Op& op, const LockOptions& options);

  std::optional<CallInfo> last_;  // the last answered call
  std::string sentinel_text_;
  std::optional<Sentinel> sentinel_;  // decoded; only a complete one
  int script_turns_ = 0;              // so many runs are left to the script

  WallTime node_time_{};  // as estimated at Write; deadlines are reckoned from it
  std::size_t asked_ = 0;
  std::size_t answered_ = 0;
  std::vector<bool> written_;  // an op: SET found nothing there
  std::string trouble_;
  WallTime read_time_{};
  Judgement judgement_;
};

}  // namespace fencepost::locking
