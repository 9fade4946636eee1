// The scripts on a real redis-server against NodeModel, the rules written down a second time:
// random batches from clients with skewed clocks on few names, with ttls of a few milliseconds.
// Every reply is compared, and now and then all that is stored.
//
// The node's clock is real; the model gets the TIME that the script itself read. What the seed
// decides is what is asked; when it is asked depends on the machine.
//   FENCEPOST_SEED=N replays a seed, FENCEPOST_OPERATIONS=N makes the run longer.
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "tests/component/scripts/script_client.h"
#include "tests/support/node_model.h"

namespace fencepost::testing {

using locking::NodeModel;
namespace {

constexpr Millis kMaxTtl{50};
constexpr Millis kSkew{25};
constexpr int kNames = 100;
// Two of one rule, and one of another.
constexpr std::array<locking::ContentCrc, 3> kContents{0x1'feedbeef, 0x1'00000007, 7};

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

WallTime WallNow() {
  return std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now());
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

std::string Show(const Op& op) {
  return fmt::format("kind {} {} token {} nonce {:x} ttl {} crc {}", static_cast<int>(op.kind),
                     op.name, op.token.value(), op.nonce.bits[1], op.ttl.count(), op.crc);
}

std::string Show(const Reply& reply) {
  return fmt::format("code {} token {} crc {} rest {} quarantined {}", static_cast<int>(reply.code),
                     reply.token.value(), reply.crc, reply.rest.count(), reply.quarantined);
}

// The codes that a run must have seen, by kind, to have compared anything.
const std::map<OpKind, std::set<ReplyCode>>& CodesToSee() {
  using enum ReplyCode;
  static const std::map<OpKind, std::set<ReplyCode>> codes = {
      {OpKind::kAcquire,
       {kGranted, kGrantedTakeover, kContended, kStale, kRefusedAhead, kRefusedBehind, kRefusedTtl,
        kDone, kNoSentinel, kForeign}},
      {OpKind::kFill, {kFilled, kContended, kDone, kForeign}},
      {OpKind::kExtend, {kExtended, kExpired, kStolen, kDone, kForeign}},
      {OpKind::kAbort, {kFreed, kExpired, kStolen, kForeign}},
      {OpKind::kRelease, {kFreed, kExpired, kStolen, kForeign}},
      {OpKind::kDone, {kMarked, kMarkedLate, kAlreadyDone, kConflict, kForeign}},
      {OpKind::kForget, {kFreed, kExpired, kContended, kForeign}},
      {OpKind::kInspect, {kContended, kDone, kStale, kExpired, kForeign}}};
  return codes;
}

class Differential : public ::testing::Test {
 protected:
  Differential() : random_(FromEnvironment("FENCEPOST_SEED", 1)) {
    for (int i = 0; i < kNames; ++i) names_.push_back(fmt::format("fencepost:{{orders}}:{}", i));
    attempts_.resize(kNames);
  }

  std::uint64_t Below(std::uint64_t limit) { return random_() % limit; }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }

  Token NewToken(std::size_t name) {
    if (OneIn(4)) {  // a neighbour of what the node has
      const NodeModel::Unit unit = model_.Look(names_[name], last_time_);
      const std::uint64_t floor = std::max(unit.floor, unit.token).value();
      if (floor > 1) return Token(floor - 1 + Below(3));
    }
    constexpr std::array kOffsets{0, 0, 0, 0, 12, -12, 24, -24, 26, -26, 40, -40};
    const WallTime wall = WallNow() + Millis(kOffsets[Below(kOffsets.size())]);
    const std::uint64_t counter = OneIn(3) ? 0 : Below(1U << Token::kShift);
    return Token(Token::AtWall(wall).value() + counter);
  }

  Op RandomOp(OpKind kind) {
    const std::size_t name = Below(kNames);
    auto& attempts = attempts_[name];
    Op op{.kind = kind,
          .lock = {static_cast<std::uint32_t>(++sent_), 1},
          .round = static_cast<std::uint16_t>(sent_),
          .name = names_[name],
          .token = {},
          .nonce = {},
          .ttl = Millis(Below(OneIn(3) ? 54 : 8)),
          .crc = kContents[Below(kContents.size())]};
    if (kind == OpKind::kDone) op.ttl += OneIn(3) ? kMaxTtl + 2 * kSkew : Millis(1);
    if (!attempts.empty() && !OneIn(kind == OpKind::kAcquire ? 2 : 6)) {
      const Op& earlier = attempts[Below(attempts.size())];
      op.token = earlier.token;
      op.nonce = earlier.nonce;
      if (OneIn(8)) op.token = NewToken(name);
    } else {
      op.token = NewToken(name);
      op.nonce = {{random_(), random_()}};
      attempts.push_back(op);
      if (attempts.size() > 3) attempts.erase(attempts.begin());
    }
    return op;
  }

  OpKind RandomKind() {
    constexpr std::array kKinds{OpKind::kAcquire, OpKind::kAcquire, OpKind::kAcquire,
                                OpKind::kExtend,  OpKind::kExtend,  OpKind::kFill,
                                OpKind::kAbort,   OpKind::kRelease, OpKind::kDone,
                                OpKind::kForget,  OpKind::kInspect};
    return kKinds[Below(kKinds.size())];
  }

  // `rest` of a DONE is PTTL, which the node may read some moments before or after TIME.
  static bool Same(const Reply& real, const Reply& model, Millis slack) {
    const Millis off = std::chrono::abs(real.rest - model.rest);
    return real.lock == model.lock && real.round == model.round && real.kind == model.kind &&
           real.code == model.code && real.quarantined == model.quarantined &&
           real.token == model.token && real.crc == model.crc &&
           off <= (real.code == ReplyCode::kDone ? slack : Millis(0));
  }

  // What the node has of each operation's name, read between two looks at its clock.
  struct Kept {
    std::string value;  // in hex; "-": gone
    std::int64_t expires = 0;
  };
  struct Sight {
    WallTime before;
    std::vector<Kept> names;
    WallTime after;
  };
  Sight Look(std::span<const Op> ops) {
    std::vector<std::string> command = {
        "EVAL",
        "local a = {} local function hex(s) return (s:gsub('.', function(c) return "
        "string.format('%02x', c:byte()) end)) end "
        "for i, k in ipairs(KEYS) do local v = redis.pcall('GET', k) a[#a + 1] = "
        "type(v) == 'table' and '?' or v and '=' .. hex(v) or '-' "
        "a[#a + 1] = redis.call('PEXPIRETIME', k) end return table.concat(a, ' ')",
        std::to_string(ops.size())};
    for (const Op& op : ops) command.emplace_back(op.name);
    Sight sight{client_.NodeTime(), {}, {}};
    std::istringstream answer(client_.Command(command));
    for (std::size_t i = 0; i < ops.size(); ++i) {
      Kept& stored = sight.names.emplace_back();
      answer >> stored.value >> stored.expires;
    }
    sight.after = client_.NodeTime();
    return sight;
  }

  // No floor is forgotten sooner than the model says, but for the milliseconds that the script ran
  // before it read TIME (PTTL is as of its start) and after that.
  bool Explains(const Sight& sight, std::size_t i, const Op& op, WallTime start,
                WallTime asked) const {
    const Kept& stored = sight.names[i];
    const NodeModel::Unit unit = model_.Look(op.name, asked);
    if (unit.state == NodeModel::State::kForeign) return true;
    const WallTime soonest = unit.expires - std::max(sight.before - asked, asked - start);
    if (stored.value == "-") {
      return unit.state == NodeModel::State::kAbsent || soonest <= sight.after;
    }
    const WallTime real{Millis(stored.expires)};
    return stored.value == "=" + Hex(NodeModel::Encode(unit)) && real <= unit.expires &&
           real >= soonest;
  }

  // The model's state is advanced to what explains the node's answers and what it has stored. Keys
  // expire by the time at which the node started the script; TIME was read in it a moment (rarely:
  // some ms) later. When they do expire is the node's own, and the model takes it over.
  void CompareBatch(std::span<const Op> ops, const CallResult& result) {
    const NodeModel before = model_;
    const WallTime now = result.header.node_time;
    const Millis took = WallNow() - now;
    const Sight sight = Look(ops);
    for (WallTime start = now; start >= last_time_; start -= Millis(1)) {
      std::vector<Reply> expected;
      CallHeader header;
      model_ = before;
      model_.Apply(ops[0].kind, ops, options_, now, start, &header, expected);
      const Millis slack = std::max(took, now - start) + Millis(1);
      const auto same = [&](const Reply& a, const Reply& b) { return Same(a, b, slack); };
      if (header.quarantined != result.header.quarantined) continue;
      if (!std::ranges::equal(result.replies, expected, same)) continue;
      bool explained = true;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        explained = explained && Explains(sight, i, ops[i], start, now);
      }
      if (!explained) continue;
      last_time_ = now;
      return TakeExpiries(sight, ops);
    }
    model_ = before;
    const std::vector<Reply> expected = model_.Apply(ops[0].kind, ops, options_, now, nullptr);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (Same(result.replies[i], expected[i], took + Millis(1))) continue;
      FAIL() << Show(ops[i])
             << "\n  there: " << Hex(NodeModel::Encode(before.Look(ops[i].name, now))) << " at "
             << now.time_since_epoch().count() << "\n  node:  " << Show(result.replies[i])
             << "\n  model: " << Show(expected[i]);
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const NodeModel::Unit unit = model_.Look(ops[i].name, now);
      if (Explains(sight, i, ops[i], now, now)) continue;
      ADD_FAILURE() << Show(ops[i]) << "\n  node:  " << sight.names[i].value << " until "
                    << sight.names[i].expires << "\n  model: " << Hex(NodeModel::Encode(unit))
                    << " until " << unit.expires.time_since_epoch().count();
    }
    FAIL() << "no single moment from " << last_time_.time_since_epoch().count() << " to "
           << now.time_since_epoch().count() << " explains the answers of a batch of " << ops.size()
           << " and what is stored, looked at from " << sight.before.time_since_epoch().count()
           << " to " << sight.after.time_since_epoch().count();
  }

  void TakeExpiries(const Sight& sight, std::span<const Op> ops) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto state = model_.Look(ops[i].name, last_time_).state;
      if (state == NodeModel::State::kForeign) continue;
      if (sight.names[i].value == "-") {
        model_.Remove(ops[i].name);
      } else {
        model_.SetExpiry(ops[i].name, WallTime(Millis(sight.names[i].expires)));
      }
    }
  }

  // One name at a time is somebody else's.
  void MoveForeign() {
    if (foreign_ != nullptr) {
      client_.Command({"DEL", *foreign_});
      model_.Remove(*foreign_);
    }
    foreign_ = &names_[Below(kNames)];
    client_.Command({"DEL", *foreign_});
    const std::string h = "H" + std::string(27, '0');
    const std::vector<std::vector<std::string>> kinds = {
        {"RPUSH", "a list"},
        {"SADD", "a set"},
        {"HSET", "a", "hash"},
        {"XADD", "*", "a", "stream"},
        {"SET", "somebody's"},
        {"SET", "Hello"},
        {"SET", ""},
        {"SET", "D" + std::string(24, 'x')},
        {"SET", "F" + std::string(16, 'x')},
        {"SET", "H" + std::string(43, 'x')},
        {"SET", h + std::string(16, 'n') + "and a tail that is"},
        {"SET", h + std::string(16, 'n') + std::string(16, 'x')},
        // Hex digits are written small.
        {"SET", "D" + std::string(24, 'A')},
        {"SET", "F" + std::string(16, 'F')},
        {"SET", "H" + std::string(27, 'A') + std::string(16, 'n')},
        {"SET", h + std::string(16, 'n') + std::string(16, 'F')}};
    std::vector<std::string> command = kinds[Below(kinds.size())];
    command.insert(command.begin() + 1, *foreign_);
    client_.Command(command);
    foreign_value_ = command[0] == "SET" ? Hex(command[2]) + ";" : "?";
    model_.PutForeign(*foreign_);
  }

  void OneBatch() {
    const OpKind kind = RandomKind();
    std::vector<Op> ops;
    const std::size_t size = 1 + Below(OneIn(4) ? 128 : 32);
    for (std::size_t i = 0; i < size; ++i) ops.push_back(RandomOp(kind));
    options_.max_skew = OneIn(4) ? kSkew / 2 : kSkew;  // clients need not agree
    const CallResult result = client_.Call(kind, ops, options_);
    if (result.error.starts_with("NOSENTINEL ")) {
      ASSERT_FALSE(model_.Complete());
      seen_[kind].insert(ReplyCode::kNoSentinel);
      return;
    }
    ASSERT_EQ(result.error, "");
    ASSERT_TRUE(model_.Complete()) << "the node answered without a complete sentinel";
    for (const Reply& reply : result.replies) seen_[kind].insert(reply.code);
    CompareBatch(ops, result);
  }

  // An acquire by plain commands, with an estimate of the node's clock that is off by some ms: what
  // it leaves behind and whether it counts.
  void OnePlainAcquire() {
    using Fate = locking::PlainAcquire::Fate;
    const Op op = RandomOp(OpKind::kAcquire);
    const locking::Instant asked = locking::ReadClocks().boot;
    const WallTime estimate = client_.NodeTime() + Millis(Below(80)) - Millis(40);
    locking::PlainAcquire plain;
    plain.OnCall({asked, locking::ReadClocks().boot, estimate});
    plain.OnSentinel(CompleteSentinel(kMaxTtl));
    const WallTime deadline = client_.AskPlainly(op, options_, plain);
    const auto& judgement = plain.Judge({&op, 1}, options_);
    ASSERT_EQ(judgement.error, "");
    ASSERT_FALSE(judgement.no_sentinel);
    const Fate fate = judgement.fates.at(0);
    const WallTime now = judgement.header.node_time;
    plain_seen_.insert(fate);
    const auto stands = [&](WallTime at) {
      return model_.Look(op.name, at).state != NodeModel::State::kAbsent;
    };
    if (fate == Fate::kAskScript) {
      ASSERT_TRUE(stands(last_time_)) << Show(op);
    } else {
      ASSERT_FALSE(stands(now)) << Show(op);
      const Reply reply = model_.AcquirePlainly(op, options_, deadline, now, nullptr);
      ASSERT_EQ(reply.code, fate == Fate::kRefused ? ReplyCode::kError : ReplyCode::kGranted);
      ASSERT_EQ(reply.quarantined, judgement.header.quarantined);
      if (fate != Fate::kRefused) {
        ASSERT_EQ(fate == Fate::kLengthen, deadline < now + op.ttl);
      }
    }
    last_time_ = now;
  }

  void WriteSentinel() {
    SentinelWrite write;
    if (!OneIn(4)) write.expected = model_.sentinel();
    write.replacement = CompleteSentinel(kMaxTtl, last_time_ + Millis(Below(20)));
    if (OneIn(4)) write.replacement[0] = 'F';
    if (OneIn(2)) write.quarantine_for = Millis(Below(20));
    const auto answer = client_.WriteSentinel(write);
    ASSERT_EQ(answer.current, model_.ApplySentinelWrite(write, answer.node_time));
    last_time_ = answer.node_time;
  }

  void CompareStored() {
    std::vector<std::string> command = {
        "EVAL",
        "local a = {} local function now() local t = redis.call('TIME') "
        "return string.format('%013d', t[1] * 1000 + math.floor(t[2] / 1000)) end a[1] = now() "
        "local function hex(s) return (s:gsub('.', function(c) return string.format('%02x', "
        "c:byte()) end)) end "
        "for i, k in ipairs(KEYS) do local v = redis.pcall('GET', k) a[#a + 1] = "
        "type(v) == 'table' and '?' or v and hex(v) .. ';' or '-' "
        "a[#a + 1] = redis.call('PTTL', k) end a[#a + 1] = now() return table.concat(a, ' ')",
        std::to_string(kNames)};
    command.insert(command.end(), names_.begin(), names_.end());
    std::istringstream answer(client_.Command(command));
    const auto number = [&] {
      std::int64_t value = 0;
      answer >> value;
      return value;
    };
    struct Stored {
      std::string value;
      std::int64_t pttl;
    };
    const WallTime first{Millis(number())};
    std::vector<Stored> all;
    for (int i = 0; i < kNames; ++i) {
      Stored& stored = all.emplace_back();
      answer >> stored.value;
      stored.pttl = number();
    }
    const WallTime last{Millis(number())};
    ASSERT_TRUE(answer);
    for (int i = 0; i < kNames; ++i) {
      if (all[i].value == "-") {
        ASSERT_EQ(model_.Look(names_[i], first).state, NodeModel::State::kAbsent) << names_[i];
        continue;
      }
      const NodeModel::Unit unit = model_.Look(names_[i], last_time_);
      if (unit.state == NodeModel::State::kForeign) {
        ASSERT_EQ(all[i].value, foreign_value_) << names_[i];
        continue;
      }
      ASSERT_EQ(all[i].value, Hex(NodeModel::Encode(unit)) + ";") << names_[i];
      ASSERT_GE(all[i].pttl, std::max<std::int64_t>(-2, (unit.expires - last).count() - 1));
      ASSERT_LE(all[i].pttl, (unit.expires - last_time_).count());
    }
    last_time_ = first;
  }

  std::mt19937_64 random_;
  RedisServer server_;
  ScriptClient client_{server_};
  NodeModel model_{std::string(40, 'r')};
  LockOptions options_;
  std::vector<std::string> names_;
  std::vector<std::vector<Op>> attempts_;  // by name, the last few identities that were used
  std::map<OpKind, std::set<ReplyCode>> seen_;
  std::set<locking::PlainAcquire::Fate> plain_seen_;
  WallTime last_time_ = WallNow() - Millis(1'000);  // the newest TIME heard; never goes back
  std::uint64_t sent_ = 0;
  const std::string* foreign_ = nullptr;  // of names_
  std::string foreign_value_;             // as CompareStored reads it
};

TEST_F(Differential, ARealNodeAnswersAndStoresWhatTheModelSays) {
  const std::uint64_t seed = FromEnvironment("FENCEPOST_SEED", 1);
  const std::uint64_t operations = FromEnvironment("FENCEPOST_OPERATIONS", 120'000);
  SCOPED_TRACE(fmt::format("replay with FENCEPOST_SEED={}", seed));
  RecordProperty("seed", std::to_string(seed));
  std::printf("seed %s\n", std::to_string(seed).c_str());
  for (int batch = 0; sent_ < operations; ++batch) {
    if (!model_.Complete() ? OneIn(3) : OneIn(60)) WriteSentinel();
    if (OneIn(150)) {
      client_.Command({"FLUSHALL"});
      model_.Wipe();
    }
    if (OneIn(20)) MoveForeign();
    OneBatch();
    for (int i = 0; i < 4 && model_.Complete() && !HasFatalFailure(); ++i) OnePlainAcquire();
    if (batch % 16 == 0) CompareStored();
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(plain_seen_.size(), 4u) << "all fates of an acquire by plain commands";
  for (const auto& [kind, codes] : CodesToSee()) {
    for (const ReplyCode code : codes) {
      EXPECT_TRUE(seen_[kind].contains(code))
          << "kind " << static_cast<int>(kind) << " never answered code " << static_cast<int>(code);
    }
  }
}

}  // namespace
}  // namespace fencepost::testing
