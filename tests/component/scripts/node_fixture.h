// One real lock node of a store, and operations on one name of it.
#pragma once

#include "tests/component/scripts/script_client.h"

namespace fencepost::testing {

inline constexpr Millis kSkew{5'000};
inline constexpr Millis kTtl{20'000};
inline constexpr Millis kMaxTtl{30'000};

class Node : public ::testing::Test {
 protected:
  Node() { WriteSentinel(); }

  void WriteSentinel(WallTime quarantine_until = WallTime(Millis(0))) {
    client_.Command(
        {"SET", std::string(locking::kSentinelKey), CompleteSentinel(kMaxTtl, quarantine_until)});
  }
  Op Make(OpKind kind, Token token, std::uint64_t nonce, Millis ttl = kTtl) {
    return {.kind = kind,
            .lock = {1, 1},
            .round = 7,
            .name = name_,
            .token = token,
            .nonce = {{0xabcdef, nonce}},
            .ttl = ttl,
            .crc = 0x1'feedbeef};
  }
  Reply Ask(const Op& op) { return client_.Ask(op, options_); }
  ReplyCode Code(const Op& op) { return Ask(op).code; }
  // A token of the node's wall time, moved.
  Token At(Millis offset = Millis(0)) { return Token::AtWall(client_.NodeTime() + offset); }
  std::string Value() { return client_.Command({"GET", name_}); }
  static std::string Hex(Token token) { return fmt::format("{:016x}", token.value()); }
  std::int64_t Pttl() { return std::stoll(client_.Command({"PTTL", name_})); }

  RedisServer server_;
  ScriptClient client_{server_};
  LockOptions options_{.max_skew = kSkew};
  std::string name_ = "fencepost:{orders}:o-17";
};

}  // namespace fencepost::testing
