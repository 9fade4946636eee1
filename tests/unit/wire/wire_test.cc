#include "locking/redis/wire.h"

#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "locking/core/store/sentinel.h"
#include "locking/core/store/store.h"

namespace fencepost::locking {
namespace {

constexpr std::string_view kNonceBytes{"\x01\x23\x45\x67\x89\xab\xcd\xef\0\0\0\0\0\0\0\xff", 16};

Op Make(OpKind kind, std::string_view name = "fencepost:{orders}:o-17") {
  return {.kind = kind,
          .lock = {3, 9},
          .round = 5,
          .name = name,
          .token = Token(9'223'372'036'854'775'807U),
          .nonce = {{0x0123456789abcdef, 0xff}},
          .ttl = Millis(10'000),
          .crc = 0xab};
}

std::string Call(OpKind kind, std::span<const Op> ops) {
  std::string out = "kept";
  FormatCall(kind, ops, LockOptions{.max_skew = Millis(5'000)}, out);
  EXPECT_EQ(out.substr(0, 4), "kept");
  return out.substr(4);
}

// The RESP of one operation, with its ARG.
std::string OneCall(std::string_view sha, std::string_view arg) {
  return fmt::format(
      "*7\r\n$7\r\nEVALSHA\r\n$40\r\n{}\r\n$1\r\n2\r\n$19\r\nfencepost::sentinel\r\n"
      "$23\r\nfencepost:{{orders}}:o-17\r\n$26\r\n00000000050000000000010000\r\n${}\r\n{}\r\n",
      sha, arg.size(), arg);
}

tl::expected<CallHeader, std::string> Parse(OpKind kind, std::string_view payload,
                                            std::vector<Reply>& replies) {
  const Op op = Make(kind);
  return ParseCall(kind, {&op, 1}, payload, replies);
}

Reply ParseOne(OpKind kind, std::string_view answer) {
  std::vector<Reply> replies;
  const auto header = Parse(kind, fmt::format("1763700000123456A{}", answer), replies);
  EXPECT_TRUE(header) << answer;
  return replies.empty() ? Reply{} : replies[0];
}

TEST(Wire, HasEveryScriptWithTheShaThatRedisReckons) {
  EXPECT_EQ(AllScripts().size(), 8U);
  for (const Script* script : AllScripts()) {
    EXPECT_TRUE(script->text.starts_with("#!lua")) << script->name;
    EXPECT_EQ(script->sha.size(), 40U);
  }
  EXPECT_EQ(&ScriptFor(OpKind::kAbort), &ScriptFor(OpKind::kRelease));
  EXPECT_EQ(ScriptFor(OpKind::kAcquire).name, "acquire");
  EXPECT_EQ(ScriptNamed("sentinel_write").name, "sentinel_write");
}

TEST(Wire, LetsOnlyAcquireFailWhenANodeIsFull) {
  for (const Script* script : AllScripts()) {
    const std::string first = script->text.substr(0, script->text.find('\n'));
    const char* flags = script->name == "acquire"   ? "#!lua"
                        : script->name == "inspect" ? "#!lua flags=no-writes"  // it may, when full
                                                    : "#!lua flags=allow-oom";
    EXPECT_EQ(first, flags) << script->name;
  }
}

TEST(Wire, WritesForEachKindTheFixedWidthFieldsThatItsScriptReads) {
  const std::string token = "7fffffffffffffff";
  const std::string nonce(kNonceBytes);
  const auto expect = [](OpKind kind, const std::string& arg) {
    const Op op = Make(kind);
    EXPECT_EQ(Call(kind, {&op, 1}), OneCall(ScriptFor(kind).sha, arg));
  };
  expect(OpKind::kAcquire, token + nonce);
  expect(OpKind::kFill, token + nonce);
  expect(OpKind::kExtend, nonce);
  expect(OpKind::kAbort, "F" + token + nonce);
  expect(OpKind::kRelease, "F" + token + nonce);
  expect(OpKind::kDone, "D" + token + "00000000000000ab" + nonce);
  expect(OpKind::kForget, "");
  expect(OpKind::kInspect, "");
}

TEST(Wire, WritesATtlWithEachNameOnlyWhereTheyDiffer) {
  std::vector<Op> ops = {Make(OpKind::kExtend, "a"), Make(OpKind::kExtend, "b")};
  const std::string nonce(kNonceBytes);
  EXPECT_TRUE(Call(OpKind::kExtend, ops)
                  .ends_with("$26\r\n00000000050000000000010000\r\n$16\r\n" + nonce +
                             "\r\n$16\r\n" + nonce + "\r\n"));
  ops[1].ttl = Millis(7);
  EXPECT_TRUE(Call(OpKind::kExtend, ops)
                  .ends_with("$26\r\n0000000005000-------------\r\n$29\r\n" + nonce +
                             "0000000010000\r\n$29\r\n" + nonce + "0000000000007\r\n"));
}

TEST(Wire, WritesAllNamesBeforeAllArguments) {
  const std::vector<Op> ops = {Make(OpKind::kForget, "a"), Make(OpKind::kForget, "b")};
  const std::string call = Call(OpKind::kForget, ops);
  EXPECT_TRUE(call.starts_with("*9\r\n"));
  EXPECT_NE(call.find("$1\r\n3\r\n$19\r\nfencepost::sentinel\r\n$1\r\na\r\n$1\r\nb\r\n$26\r\n"),
            std::string::npos);
}

TEST(Wire, CutsDurationsThatDoNotFitTheirField) {
  Op op = Make(OpKind::kForget);
  op.ttl = Millis::max();
  EXPECT_NE(Call(op.kind, {&op, 1})
                .find("0000000005000"
                      "0999999999999\r\n"),
            std::string::npos);
  op.ttl = Millis(-1);
  EXPECT_NE(Call(op.kind, {&op, 1})
                .find("0000000005000"
                      "0000000000000\r\n"),
            std::string::npos);
}

TEST(Wire, ReadsMicrosecondsThatHaveNoLeadingZeros) {
  const auto time = [](std::string_view payload) {
    std::vector<Reply> replies;
    return Parse(OpKind::kExtend, payload, replies)->node_time.time_since_epoch().count();
  };
  EXPECT_EQ(time("17637000000AE"), 1'763'700'000'000);
  EXPECT_EQ(time("1763700000999AE"), 1'763'700'000'000);
  EXPECT_EQ(time("17637000001000AE"), 1'763'700'000'001);
  EXPECT_EQ(time("1763700000999999AE"), 1'763'700'000'999);
}

TEST(Wire, ReadsTheNodesTimeAndItsQuarantine) {
  std::vector<Reply> replies;
  const auto header = Parse(OpKind::kExtend, "1763700000123999QE", replies);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->node_time, WallTime(Millis(1'763'700'000'123)));
  EXPECT_TRUE(header->quarantined);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_TRUE(replies[0].quarantined);
  EXPECT_EQ(replies[0].lock, (LockId{3, 9}));
  EXPECT_EQ(replies[0].round, 5);
  EXPECT_EQ(replies[0].kind, OpKind::kExtend);
}

TEST(Wire, ReadsEveryAnswerOfEveryKind) {
  using enum ReplyCode;
  const std::vector<std::tuple<OpKind, std::string, ReplyCode>> bare = {
      {OpKind::kAcquire, "G", kGranted},      {OpKind::kAcquire, "T", kGrantedTakeover},
      {OpKind::kAcquire, "A", kRefusedAhead}, {OpKind::kAcquire, "B", kRefusedBehind},
      {OpKind::kAcquire, "L", kRefusedTtl},   {OpKind::kAcquire, "?", kForeign},
      {OpKind::kFill, "I", kFilled},          {OpKind::kExtend, "E", kExtended},
      {OpKind::kExtend, "X", kExpired},       {OpKind::kAbort, "F", kFreed},
      {OpKind::kAbort, "X", kExpired},        {OpKind::kRelease, "F", kFreed},
      {OpKind::kDone, "M", kMarked},          {OpKind::kDone, "N", kMarkedLate},
      {OpKind::kForget, "F", kFreed},         {OpKind::kForget, "X", kExpired},
      {OpKind::kInspect, "X", kExpired}};
  for (const auto& [kind, answer, code] : bare) EXPECT_EQ(ParseOne(kind, answer).code, code);

  const std::string token = "7fffffffffffffff";
  const std::vector<std::tuple<OpKind, char, ReplyCode>> with_token = {
      {OpKind::kAcquire, 'S', kStale},
      {OpKind::kExtend, 'O', kStolen},
      {OpKind::kRelease, 'O', kStolen},
      {OpKind::kDone, 'Y', kAlreadyDone}};
  for (const auto& [kind, letter, code] : with_token) {
    const Reply reply = ParseOne(kind, letter + token);
    EXPECT_EQ(reply.code, code);
    EXPECT_EQ(reply.token.value(), 9'223'372'036'854'775'807U);
  }
  for (const OpKind kind : {OpKind::kAcquire, OpKind::kFill, OpKind::kForget, OpKind::kInspect}) {
    const Reply reply = ParseOne(kind, "C" + token + "0000000001500");
    EXPECT_EQ(reply.code, kContended);
    EXPECT_EQ(reply.rest, Millis(1'500));
  }
  for (const OpKind kind : {OpKind::kAcquire, OpKind::kFill, OpKind::kExtend}) {
    const Reply reply = ParseOne(kind, "D" + token + "00000001feedbeef0000000001500");
    EXPECT_EQ(reply.code, ReplyCode::kDone);
    EXPECT_EQ(reply.crc, 0x1'feedbeef);
    EXPECT_EQ(reply.rest, Millis(1'500));
  }
  const Reply conflict = ParseOne(OpKind::kDone, "Z" + token + "00000000000000ff");
  EXPECT_EQ(conflict.code, kConflict);
  EXPECT_EQ(conflict.crc, 0xffU);
}

TEST(Wire, GivesTheAnswersInTheOrderOfTheNames) {
  std::vector<Op> ops = {Make(OpKind::kAcquire), Make(OpKind::kAcquire), Make(OpKind::kAcquire)};
  ops[1].lock = {4, 1};
  std::vector<Reply> replies(1);
  ASSERT_TRUE(ParseCall(OpKind::kAcquire, ops, "1763700000123456AGS000000000000002aT", replies));
  ASSERT_EQ(replies.size(), 4U);
  EXPECT_EQ(replies[2].lock, (LockId{4, 1}));
  EXPECT_EQ(replies[2].token, Token(42));
  EXPECT_EQ(replies[3].code, ReplyCode::kGrantedTakeover);
}

TEST(Wire, TakesNothingFromAnAnswerThatTheScriptCannotHaveGiven) {
  for (const std::string_view payload :
       {"", "1763700", "1763700000AG", "176370000012", "176370000012X", "176370000012A",
        "176370000012AE", "176370000012AGG", "176370000012AS000000000000004",
        "176370000012AS-00000000000002a", "176370000xAG", "1763700000x2AG", "17637000001234567AG",
        "176370000012AC000000000000002a000000000150x"}) {
    std::vector<Reply> replies(2);
    const auto header = Parse(OpKind::kAcquire, payload, replies);
    EXPECT_FALSE(header) << payload;
    EXPECT_EQ(replies.size(), 2U) << payload;
  }
}

TEST(Wire, SurvivesAnyBytes) {
  std::mt19937_64 random(7);
  constexpr std::string_view kAlphabet = "0123456789abcdefGTCSABLDIEFXOMNYZQ?";
  const std::vector<Op> ops(3, Make(OpKind::kAcquire));
  for (int round = 0; round < 20'000; ++round) {
    std::string payload = random() % 2 == 0 ? "1763700000123456A" : "";
    for (std::size_t n = random() % 80; n > 0; --n)
      payload += kAlphabet[random() % kAlphabet.size()];
    std::vector<Reply> replies;
    const auto kind = static_cast<OpKind>(random() % kOpKinds);
    const auto header = ParseCall(kind, ops, payload, replies);
    EXPECT_EQ(replies.size(), header ? ops.size() : 0U);
  }
}

TEST(Wire, WritesAndReadsTheCompareAndSetOfTheSentinel) {
  std::string out;
  FormatSentinelWrite({std::nullopt, "new", Millis(40'000)}, out);
  EXPECT_EQ(out,
            fmt::format("*7\r\n$7\r\nEVALSHA\r\n$40\r\n{}\r\n$1\r\n1\r\n$19\r\n"
                        "fencepost::sentinel\r\n$0\r\n\r\n$3\r\nnew\r\n$13\r\n0000000040000\r\n",
                        ScriptNamed("sentinel_write").sha));
  out.clear();
  FormatSentinelWrite({"old", "new", std::nullopt}, out);
  EXPECT_TRUE(out.ends_with("$3\r\nold\r\n$3\r\nnew\r\n$0\r\n\r\n"));

  const auto answer = ParseSentinelWrite("1763700000123C|text");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->node_time, WallTime(Millis(1'763'700'000'123)));
  EXPECT_EQ(answer->current, "C|text");
  EXPECT_EQ(ParseSentinelWrite("1763700000123")->current, std::nullopt);
  EXPECT_FALSE(ParseSentinelWrite("176370000"));
}

}  // namespace
}  // namespace fencepost::locking
