// The session with a node as tables of events: no sockets, and time is a number.
#include "locking/redis/session/node_session.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Step = NodeSession::Step;
using Late = NodeSession::Late;
using Stage = NodeSession::Stage;

constexpr Nanos kHandshake = 1000ms;
constexpr Nanos kTimeout = 100ms;

class SessionTest : public ::testing::Test {
 protected:
  explicit SessionTest(std::string password = "", std::uint64_t seed = 1)
      : session({.username = "",
                 .password = std::move(password),
                 .scripts = AllScripts(),
                 .handshake_timeout = kHandshake,
                 .seed = seed}) {}

  // All steps that the bytes lead to, but for the last kWait; texts of delivered replies.
  std::vector<Step> Feed(std::string_view bytes) {
    session.OnBytes(bytes);
    std::vector<Step> steps;
    for (;;) {
      const Step step = session.Next(now);
      if (step == Step::kWait) return steps;
      if (step == Step::kReply) texts.emplace_back(session.reply().str, session.reply().len);
      steps.push_back(step);
      if (step == Step::kClose) return steps;
    }
  }
  Step TimerAtDeadline(std::string_view doing = "") {
    now = session.deadline();
    return session.OnTimer(now, doing);
  }
  static std::string Loaded() {
    std::string all;
    for (std::size_t i = 0; i < AllScripts().size(); ++i) all += "$3\r\nsha\r\n";
    return all;
  }
  void Open() {
    ASSERT_EQ(session.OnOpen(out), Step::kSend);
    ASSERT_THAT(Feed(Loaded()), ElementsAre(Step::kPrepared));
  }
  void BecomeReady() {
    if (session.stage() == Stage::kDown) {
      ASSERT_EQ(session.deadline() == Instant::max() ? session.Start(now) : TimerAtDeadline(),
                Step::kConnect);
    }
    Open();
    back = session.Up(now);
    EXPECT_FALSE(session.EndTurn());
    EXPECT_EQ(session.deadline(), Instant::max());
  }
  void Request(std::size_t replies, Late late = Late::kDropped) {
    session.BeginTurn(now, kTimeout);
    session.Ask(replies, late);
  }
  std::string Why() const { return session.failure().Text(); }

  Instant now{1h};
  std::string out;
  std::vector<std::string> texts;
  NodeSession::Back back;
  NodeSession session;
};

TEST_F(SessionTest, ConnectsLoadsTheScriptsAndIsReady) {
  EXPECT_EQ(session.Start(now), Step::kConnect);
  EXPECT_EQ(session.deadline(), now + kHandshake);
  Open();
  EXPECT_THAT(out, HasSubstr("SCRIPT"));
  EXPECT_THAT(out, ::testing::Not(HasSubstr("AUTH")));
  back = session.Up(now);
  EXPECT_TRUE(back.newly_up && !back.reconnect && !back.note);
  session.EndTurn();
  EXPECT_EQ(session.stage(), Stage::kReady);
}

TEST_F(SessionTest, ShowsOfANodesWordsOnlyWhatIsFitToPrint) {
  BecomeReady();
  Feed("$400\r\n\x1b[2J" + std::string(396, 'x') + "\r\n");
  EXPECT_EQ(Why(),
            "unexpected reply: no request is outstanding: ?[2J" + std::string(296, 'x') + " [cut]");
}

TEST_F(SessionTest, DeliversRepliesInOrderAndSaysWhenAllAreThere) {
  BecomeReady();
  Request(2);
  EXPECT_THAT(Feed("$1\r\na\r\n$1\r"), ElementsAre(Step::kReply));
  EXPECT_THAT(Feed("\nb\r\n"), ElementsAre(Step::kReply, Step::kAnswered));
  EXPECT_THAT(texts, ElementsAre("a", "b"));
}

TEST_F(SessionTest, TakesNilRepliesThatHaveComeWithoutMakingThem) {
  BecomeReady();
  Request(6);
  session.OnBytes("$-1\r\n$-1\r\n$-1\r\n$-");
  ASSERT_EQ(session.Next(now), Step::kReply);
  EXPECT_EQ(session.TakeNils(1), 1u);
  EXPECT_EQ(session.TakeNils(9), 1u) << "the next one is not there as a whole";
  EXPECT_EQ(session.Next(now), Step::kWait);
  session.OnBytes("1\r\n$-1\r\n$-1\r\n");
  ASSERT_EQ(session.Next(now), Step::kReply);
  EXPECT_EQ(session.TakeNils(9), 1u) << "the last one of a request is delivered";
  EXPECT_EQ(session.Next(now), Step::kReply);
  EXPECT_EQ(session.Next(now), Step::kAnswered);
  EXPECT_EQ(session.Next(now), Step::kWait);
}

TEST_F(SessionTest, TakesNoNilThatIsPartOfAReplyOrAnother) {
  BecomeReady();
  Request(4);
  session.OnBytes("$-1\r\n*2\r\n$-1\r\n");
  ASSERT_EQ(session.Next(now), Step::kReply);
  EXPECT_EQ(session.TakeNils(9), 0u);
  EXPECT_EQ(session.Next(now), Step::kWait);
  EXPECT_EQ(session.TakeNils(9), 0u);
  session.OnBytes("$-1\r\n$-1\r\n$-1\r\n");
  ASSERT_EQ(session.Next(now), Step::kReply);
  EXPECT_EQ(session.reply().elements, 2u);
}

struct BrokenRow {
  std::string_view name;
  std::string_view password;
  std::string_view bytes;   // that come after OnOpen
  std::string_view broken;  // what the transport says, instead
  CommandError reason;
  std::string_view text;
  UnavailableReason away = UnavailableReason::kOther;
};

class Handshake : public ::testing::TestWithParam<BrokenRow> {};

TEST_P(Handshake, ThatFailsClosesTheSessionAndSaysWhy) {
  const BrokenRow& row = GetParam();
  NodeSession session({.username = "",
                       .password = std::string(row.password),
                       .scripts = AllScripts(),
                       .handshake_timeout = kHandshake,
                       .seed = 1});
  const Instant now{1h};
  std::string out;
  session.Start(now);
  Step step = Step::kWait;
  if (!row.broken.empty()) {
    step = session.OnBroken(row.broken, now, row.away);
  } else {
    session.OnOpen(out);
    session.OnBytes(row.bytes);
    step = session.Next(now);
  }
  EXPECT_EQ(step, Step::kClose);
  EXPECT_EQ(session.Next(now), Step::kWait) << "nothing follows";
  EXPECT_EQ(session.failure().reason, row.reason);
  EXPECT_EQ(session.failure().away, row.away);
  EXPECT_THAT(session.failure().Text(), HasSubstr(std::string(row.text)));
  EXPECT_TRUE(session.note_failure());
  EXPECT_GE(session.deadline(), now + 50ms);
  EXPECT_LE(session.deadline(), now + 100ms);
  EXPECT_EQ(session.OnTimer(session.deadline(), ""), Step::kConnect);
}

constexpr auto kOther = CommandError::kOther;
constexpr auto kAuth = CommandError::kAuth;
constexpr auto kConnection = CommandError::kConnection;
const std::string kNested = [] {
  std::string arrays;
  for (int i = 0; i < 20; ++i) arrays += "*1\r\n";
  return arrays;
}();
const BrokenRow kBroken[] = {
    {"Refused", "", "", "Connection refused", kConnection, "Connection refused",
     UnavailableReason::kRefused},
    {"NoRoute", "", "", "No route to host", kConnection, "No route to host"},
    {"Dns", "", "", "the name cannot be resolved: unknown", kConnection, "cannot be resolved"},
    {"Tls", "", "", "TLS: certificate has expired", kConnection, "certificate has expired"},
    {"WrongPassword", "x", "-WRONGPASS invalid\r\n", "", kAuth, "login: the node says: WRONGPASS",
     UnavailableReason::kLogin},
    {"NoPasswordSet", "x", "-ERR AUTH <password> called without any\r\n", "", kAuth,
     "the node has no password", UnavailableReason::kLogin},
    {"PasswordWanted", "", "-NOAUTH Authentication required.\r\n", "", kAuth,
     "check lock.redis.username", UnavailableReason::kLogin},
    {"Loading", "", "-LOADING Redis is loading\r\n", "", kOther, "the node loads its data",
     UnavailableReason::kLoading},
    {"ReplicaCutOff", "", "-MASTERDOWN Link is down\r\n", "", kOther, "list independent primaries",
     UnavailableReason::kReplica},
    {"NoRightToLoad", "", "-NOPERM no permissions to run the 'script|load' command\r\n", "", kAuth,
     "grant it +script|load", UnavailableReason::kNoRight},
    {"LoginRefusedInOtherWords", "x", "-ERR no\r\n", "", kOther, "login: the node says: ERR no",
     UnavailableReason::kLogin},
    {"Garbage", "", "HTTP/1.1 400 Bad Request\r\n", "", kOther, "this is not Redis"},
    {"GarbageAfterAReply", "x", "+OK\r\n\x15\x03\x03\r\n", "", kOther, "this is not Redis"},
    {"ArrayBeyondMeasure", "", "*700000000\r\n", "", kOther, "an answer of too many"},
    {"ArraysNestedBeyondMeasure", "", kNested, "", kOther, "this is not Redis"},
};
INSTANTIATE_TEST_SUITE_P(All, Handshake, ::testing::ValuesIn(kBroken),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(SessionTest, GivesUpAHandshakeThatIsNotAnsweredAndSaysWhatItWasAt) {
  session.Start(now);
  EXPECT_EQ(session.OnTimer(now + kHandshake - 1ns, ""), Step::kWait);
  EXPECT_EQ(TimerAtDeadline("TLS handshake"), Step::kClose);
  EXPECT_EQ(session.failure().reason, CommandError::kTimeout);
  EXPECT_THAT(Why(), HasSubstr("within the timeout, at: TLS handshake"));
  EXPECT_EQ(session.failure().away, UnavailableReason::kTimeout);
}

TEST_F(SessionTest, CountsTheTimeOfTheHandshakeFromItsBeginningAcrossAllRequests) {
  session.Start(now);
  const Instant deadline = session.deadline();
  now += kHandshake / 2;
  Open();
  session.Ask(1, Late::kDelivered);
  EXPECT_EQ(session.deadline(), deadline);
  EXPECT_EQ(TimerAtDeadline(), Step::kClose);
}

// A write that does not drain looks the same: nothing comes back.
TEST_F(SessionTest, StallsWhenARequestIsNotAnsweredAndDropsItsLateReplies) {
  BecomeReady();
  Request(2);
  const Instant began = now;
  EXPECT_THAT(Feed("$1\r\na\r\n"), ElementsAre(Step::kReply));
  EXPECT_EQ(TimerAtDeadline(), Step::kStalled);
  EXPECT_EQ(now, began + kTimeout);
  EXPECT_TRUE(session.stalled());
  now += kTimeout;
  EXPECT_THAT(Feed("$4\r\nlate\r\n"), ElementsAre(Step::kAnswered));
  EXPECT_TRUE(session.EndTurn());
  Request(1);
  EXPECT_THAT(Feed("$3\r\nown\r\n"), ElementsAre(Step::kReply, Step::kAnswered));
  EXPECT_THAT(texts, ElementsAre("a", "own"));
}

TEST_F(SessionTest, DeliversLateRepliesWhereTheRequestWantsThem) {
  BecomeReady();
  Request(1, Late::kDelivered);
  EXPECT_EQ(TimerAtDeadline(), Step::kStalled);
  EXPECT_THAT(Feed("$4\r\nlate\r\n"), ElementsAre(Step::kReply, Step::kAnswered));
  EXPECT_THAT(texts, ElementsAre("late"));
}

TEST_F(SessionTest, ClosesAStalledConnectionAfterTenTimeouts) {
  BecomeReady();
  Request(1);
  const Instant began = now;
  EXPECT_EQ(TimerAtDeadline(), Step::kStalled);
  EXPECT_EQ(session.deadline(), began + 10 * kTimeout);
  EXPECT_EQ(TimerAtDeadline(), Step::kClose);
  EXPECT_EQ(Why(), "no answer for ten timeouts");
  EXPECT_FALSE(session.stalled());
  BecomeReady();
  EXPECT_TRUE(back.newly_up && back.reconnect && back.note);
}

// The timer of a process that was suspended comes late; the node gets a timeout to answer all the
// same.
TEST_F(SessionTest, WaitsOneTimeoutMoreWhenItsOwnTimerCameLate) {
  BecomeReady();
  Request(1);
  now += 1h;
  EXPECT_EQ(session.OnTimer(now, ""), Step::kStalled);
  EXPECT_EQ(session.deadline(), now + kTimeout);
}

TEST_F(SessionTest, ClosesAfterAReplyThatNobodyAskedFor) {
  BecomeReady();
  EXPECT_THAT(Feed("-ERR max number of clients reached\r\n"), ElementsAre(Step::kClose));
  EXPECT_THAT(Why(), HasSubstr("max number of clients"));
}

TEST_F(SessionTest, ClosesAfterMoreRepliesThanWereAskedFor) {
  BecomeReady();
  Request(1);
  session.OnBytes("$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(session.Next(now), Step::kReply);
  EXPECT_EQ(session.Next(now), Step::kAnswered);
  session.EndTurn();
  EXPECT_EQ(session.Next(now), Step::kClose);
}

TEST_F(SessionTest, ClosesAfterMoreBytesThanAnAnswerOfANodeHas) {
  BecomeReady();
  Request(1);
  const std::string mebibyte(std::size_t{1} << 20, 'x');
  EXPECT_THAT(Feed("$2000000000\r\n"), ElementsAre());
  for (int i = 0; i < 15; ++i) EXPECT_THAT(Feed(mebibyte), ElementsAre());
  EXPECT_THAT(Feed(mebibyte), ElementsAre(Step::kClose));
  EXPECT_THAT(Why(), HasSubstr("this is not Redis: an answer of too many bytes"));
  EXPECT_EQ(session.Next(now), Step::kWait) << "nothing follows";
  BecomeReady();
  Request(40);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Feed("$1048576\r\n" + mebibyte + "\r\n"), ElementsAre(Step::kReply));
  }
}

TEST_F(SessionTest, ForgetsHalfAReplyWithItsConnection) {
  BecomeReady();
  Request(1);
  EXPECT_THAT(Feed("$40\r\nhal"), ElementsAre());
  EXPECT_EQ(session.OnBroken("the node closed the connection", now), Step::kClose);
  EXPECT_EQ(Why(), "the node closed the connection");
  BecomeReady();
  Request(1);
  EXPECT_THAT(Feed("$1\r\na\r\n"), ElementsAre(Step::kReply, Step::kAnswered));
  EXPECT_THAT(texts, ElementsAre("a"));
}

TEST_F(SessionTest, LoadsTheScriptsAgainWithoutALoginAndWithinTheSameTurn) {
  BecomeReady();
  Request(1);
  const Instant deadline = session.deadline();
  EXPECT_THAT(Feed("-NOSCRIPT No matching script.\r\n"),
              ElementsAre(Step::kReply, Step::kAnswered));
  out.clear();
  EXPECT_EQ(session.Prepare(out), Step::kSend);
  EXPECT_THAT(out, ::testing::Not(HasSubstr("AUTH")));
  EXPECT_THAT(Feed(Loaded()), ElementsAre(Step::kPrepared));
  session.Ask(1, Late::kDropped);
  EXPECT_EQ(session.deadline(), deadline);
  EXPECT_THAT(Feed("$1\r\na\r\n"), ElementsAre(Step::kReply, Step::kAnswered));
}

// What replies to a batch say (READONLY, OOM, …) is the host's to judge; the session goes on.
TEST_F(SessionTest, DeliversErrorsOfAReplicaAndStaysUp) {
  BecomeReady();
  Request(1);
  EXPECT_THAT(Feed("-READONLY You can't write against a read only replica.\r\n"),
              ElementsAre(Step::kReply, Step::kAnswered));
  EXPECT_TRUE(session.up());
}

TEST_F(SessionTest, PausesLongerAfterEachFailureUpToTwoSeconds) {
  session.Start(now);
  std::vector<Nanos> pauses;
  for (int attempt = 0; attempt < 60; ++attempt) {
    ASSERT_EQ(session.OnBroken("Connection refused", now), Step::kClose);
    const Nanos pause = session.deadline() - now;
    EXPECT_GE(pause, 50ms);
    EXPECT_LE(pause, std::min<Nanos>(2000ms, 50ms * (2 << std::min(attempt, 10))));
    pauses.push_back(pause);
    ASSERT_EQ(TimerAtDeadline(), Step::kConnect);
  }
  EXPECT_GT(*std::max_element(pauses.begin(), pauses.end()), 1500ms);
}

TEST_F(SessionTest, PausesBrieflyAgainAfterASessionThatLasted) {
  session.Start(now);
  for (int attempt = 0; attempt < 20; ++attempt) {
    session.OnBroken("Connection refused", now);
    TimerAtDeadline();
  }
  Open();
  session.Up(now);
  session.EndTurn();
  now += 3s;
  session.OnBroken("the node closed the connection", now);
  EXPECT_LE(session.deadline(), now + 100ms);
}

TEST_F(SessionTest, NotesAReasonOnceAMinuteAndANewOneAfterASecond) {
  struct Row {
    Nanos after;
    std::string_view why;
    bool noted;
  };
  const Row rows[] = {{0s, "a", true},     {2s, "a", false},   {59s, "a", true},
                      {500ms, "b", false}, {500ms, "b", true}, {30s, "b", false}};
  for (const Row& row : rows) {
    now += row.after;
    session.OnBroken(row.why, now);
    EXPECT_EQ(session.note_failure(), row.noted) << row.why << " after " << row.after.count();
  }
}

class LoginSessionTest : public SessionTest {
 protected:
  LoginSessionTest() : SessionTest("hunter2") {
    session.Start(now);
    session.OnOpen(out);
  }
};

TEST_F(LoginSessionTest, LogsInFirstAndBlamesTheLoginForItsOwnErrorsOnly) {
  EXPECT_LT(out.find("AUTH"), out.find("SCRIPT"));
  EXPECT_THAT(Feed("+OK\r\n-NOPERM no permissions\r\n"), ElementsAre(Step::kClose));
  EXPECT_THAT(Why(), ::testing::StartsWith("the node says: NOPERM"));
}

TEST_F(LoginSessionTest, LeavesOutOfWhatFailedThatItWasTheLogin) {
  Feed("-WRONGPASS invalid username-password pair.\r\n");
  EXPECT_TRUE(session.failure().at_login);
  EXPECT_EQ(session.failure().what, "the node says: WRONGPASS invalid username-password pair");
}

TEST_F(LoginSessionTest, NeverRepeatsThePasswordThatTheNodeQuotes) {
  Feed("-ERR unknown command 'AUTH', with args beginning with: 'hunter2'\r\n");
  EXPECT_THAT(Why(), HasSubstr("unknown command 'AUTH'"));
  EXPECT_THAT(Why(), ::testing::Not(HasSubstr("hunter2")));
}

// --- listening -----------------------------------------------------------------------------------

constexpr Nanos kCheck = 5s;
constexpr Nanos kRefusal = 60s;

// A session as the subscriber's: no scripts, and replies that no request asked for.
struct Listener {
  explicit Listener(std::string password = "", std::uint64_t seed = 1)
      : session({.username = "",
                 .password = std::move(password),
                 .scripts = {},
                 .handshake_timeout = kHandshake,
                 .check_every = kCheck,
                 .refusal_pause = kRefusal,
                 .seed = seed}) {
    session.Start(now);
  }
  Step OnBytes(std::string_view bytes) {
    session.OnBytes(bytes);
    return session.Next(now);
  }
  Step OnTimer() { return session.OnTimer(now, ""); }
  void Listen() {
    session.OnOpen(out);
    session.Listen(now);
  }

  Instant now{1h};
  std::string out;
  NodeSession session;
};

TEST(Listening, NeedsNoReplyToBePreparedWithoutALogin) {
  Listener listener;
  EXPECT_EQ(listener.session.OnOpen(listener.out), Step::kPrepared);
  EXPECT_EQ(listener.out, "");
}

TEST(Listening, WaitsForTheLoginAndForNoScripts) {
  Listener listener("hunter2");
  EXPECT_EQ(listener.session.OnOpen(listener.out), Step::kSend);
  EXPECT_EQ(listener.OnBytes("+OK\r\n"), Step::kPrepared);
}

TEST(Listening, DeliversWhatNobodyAskedForAsItComes) {
  Listener listener;
  listener.Listen();
  listener.session.OnBytes("$1\r\na\r\n-ERR b\r\n$1\r\n");
  EXPECT_EQ(listener.session.Next(listener.now), Step::kReply);
  const ReplyPtr kept = listener.session.KeepReply();
  EXPECT_EQ(listener.session.Next(listener.now), Step::kReply);
  EXPECT_STREQ(kept->str, "a");
  EXPECT_STREQ(listener.session.reply().str, "ERR b");
  EXPECT_EQ(listener.session.Next(listener.now), Step::kWait);
}

// Each row: what happens so long after the row before.
struct LivenessRow {
  Nanos after;
  std::string_view bytes;  // empty: the timer
  Step step;
};
struct LivenessCase {
  std::string_view name;
  std::vector<LivenessRow> rows;
};

class Liveness : public ::testing::TestWithParam<LivenessCase> {};

TEST_P(Liveness, IsCheckedAtIntervalsAndEndsWithANodeThatIsSilent) {
  Listener listener;
  listener.Listen();
  int at = 0;
  for (const LivenessRow& row : GetParam().rows) {
    listener.now += row.after;
    EXPECT_EQ(row.bytes.empty() ? listener.OnTimer() : listener.OnBytes(row.bytes), row.step)
        << "row " << at++;
  }
  if (GetParam().rows.back().step != Step::kClose) return;
  EXPECT_EQ(listener.session.failure().Text(), "no answer");
  EXPECT_EQ(listener.session.failure().reason, CommandError::kTimeout);
}

const LivenessCase kLiveness[] = {
    {"Early", {{kCheck - 1ns, "", Step::kWait}, {1ns, "", Step::kCheck}}},
    {"Silent", {{kCheck, "", Step::kCheck}, {kCheck, "", Step::kClose}}},
    {"SilentAfterSigns",
     {{kCheck, "", Step::kCheck},
      {1ms, "+OK\r\n", Step::kReply},
      {kCheck - 1ms, "", Step::kCheck},
      {kCheck, "", Step::kClose}}},
    {"HalfAReplyIsASign",
     {{kCheck, "", Step::kCheck}, {4s, "$40\r\nhal", Step::kWait}, {1s, "", Step::kCheck}}},
    {"Busy", {{1s, "+OK\r\n", Step::kReply}, {4s, "", Step::kCheck}, {1s, "", Step::kWait}}},
    {"ATimerThatCameLateGivesTheNodeItsTime",
     {{1h, "", Step::kCheck}, {kCheck - 1ns, "", Step::kWait}, {1ns, "", Step::kClose}}},
};
INSTANTIATE_TEST_SUITE_P(All, Liveness, ::testing::ValuesIn(kLiveness),
                         [](const auto& row) { return std::string(row.param.name); });

struct PauseRow {
  std::string_view name;
  std::string_view error;  // of a reply; empty: the connection broke
  Nanos least;
  Nanos most;
};

class Pause : public ::testing::TestWithParam<PauseRow> {};

TEST_P(Pause, IsLongAfterARefusalAlone) {
  const PauseRow& row = GetParam();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Listener listener("", seed);
    listener.Listen();
    const Step step = row.error.empty()
                          ? listener.session.OnBroken("the node closed it", listener.now)
                          : listener.session.FailBy(row.error, listener.now);
    EXPECT_EQ(step, Step::kClose);
    EXPECT_GE(listener.session.deadline() - listener.now, row.least);
    EXPECT_LE(listener.session.deadline() - listener.now, row.most);
    EXPECT_FALSE(listener.session.failure().at_login);
  }
}

const PauseRow kPauses[] = {
    {"Broken", "", 50ms, 100ms},
    {"Loading", "LOADING Redis is loading", 50ms, 100ms},
    {"Denied", "NOPERM No permissions to access a channel", kRefusal / 2, kRefusal},
    {"LoggedOut", "NOAUTH Authentication required.", kRefusal / 2, kRefusal},
};
INSTANTIATE_TEST_SUITE_P(All, Pause, ::testing::ValuesIn(kPauses),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Listening, StopsWithoutAFailureUntilItIsStartedAgain) {
  Listener listener;
  listener.Listen();
  listener.session.Up(listener.now);
  listener.session.Stop();
  EXPECT_EQ(listener.session.deadline(), Instant::max());
  EXPECT_EQ(listener.OnBytes("+OK\r\n"), Step::kWait) << "nothing is delivered any more";
  EXPECT_EQ(listener.session.Start(listener.now), Step::kConnect);
  EXPECT_FALSE(listener.session.up());
}

}  // namespace
}  // namespace fencepost::locking
