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
                 .request_timeout = kTimeout,
                 .timeouts_until_closed = 10,
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
    session.BeginTurn(now);
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

TEST_F(SessionTest, DeliversRepliesInOrderAndSaysWhenAllAreThere) {
  BecomeReady();
  Request(2);
  EXPECT_THAT(Feed("$1\r\na\r\n$1\r"), ElementsAre(Step::kReply));
  EXPECT_THAT(Feed("\nb\r\n"), ElementsAre(Step::kReply, Step::kAnswered));
  EXPECT_THAT(texts, ElementsAre("a", "b"));
}

struct BrokenRow {
  std::string_view name;
  std::string_view password;
  std::string_view bytes;   // that come after OnOpen
  std::string_view broken;  // what the transport says, instead
  CommandError reason;
  std::string_view text;
};

class Handshake : public ::testing::TestWithParam<BrokenRow> {};

TEST_P(Handshake, ThatFailsClosesTheSessionAndSaysWhy) {
  const BrokenRow& row = GetParam();
  NodeSession session({.username = "",
                       .password = std::string(row.password),
                       .scripts = AllScripts(),
                       .handshake_timeout = kHandshake,
                       .request_timeout = kTimeout,
                       .timeouts_until_closed = 10,
                       .seed = 1});
  const Instant now{1h};
  std::string out;
  session.Start(now);
  Step step = Step::kWait;
  if (!row.broken.empty()) {
    step = session.OnBroken(row.broken, now);
  } else {
    session.OnOpen(out);
    session.OnBytes(row.bytes);
    step = session.Next(now);
  }
  EXPECT_EQ(step, Step::kClose);
  EXPECT_EQ(session.Next(now), Step::kWait) << "nothing follows";
  EXPECT_EQ(session.failure().reason, row.reason);
  EXPECT_THAT(session.failure().Text(), HasSubstr(std::string(row.text)));
  EXPECT_TRUE(session.note_failure());
  EXPECT_GE(session.deadline(), now + 50ms);
  EXPECT_LE(session.deadline(), now + 100ms);
  EXPECT_EQ(session.OnTimer(session.deadline(), ""), Step::kConnect);
}

constexpr auto kOther = CommandError::kOther;
constexpr auto kAuth = CommandError::kAuth;
constexpr auto kConnection = CommandError::kConnection;
const BrokenRow kBroken[] = {
    {"Refused", "", "", "Connection refused", kConnection, "Connection refused"},
    {"NoRoute", "", "", "No route to host", kConnection, "No route to host"},
    {"Dns", "", "", "the name cannot be resolved: unknown", kConnection, "cannot be resolved"},
    {"Tls", "", "", "TLS: certificate has expired", kConnection, "certificate has expired"},
    {"WrongPassword", "x", "-WRONGPASS invalid\r\n", "", kAuth, "login: the node says: WRONGPASS"},
    {"NoPasswordSet", "x", "-ERR AUTH <password> called without any\r\n", "", kAuth,
     "the node has no password"},
    {"PasswordWanted", "", "-NOAUTH Authentication required.\r\n", "", kAuth,
     "check lock.redis.username"},
    {"Loading", "", "-LOADING Redis is loading\r\n", "", kOther, "the node loads its data"},
    {"ReplicaCutOff", "", "-MASTERDOWN Link is down\r\n", "", kOther, "list independent primaries"},
    {"NoRightToLoad", "", "-NOPERM no permissions to run the 'script|load' command\r\n", "", kAuth,
     "give it +script|load"},
    {"Garbage", "", "HTTP/1.1 400 Bad Request\r\n", "", kOther, "this is not Redis"},
    {"GarbageAfterAReply", "x", "+OK\r\n\x15\x03\x03\r\n", "", kOther, "this is not Redis"},
};
INSTANTIATE_TEST_SUITE_P(All, Handshake, ::testing::ValuesIn(kBroken),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(SessionTest, GivesUpAHandshakeThatIsNotAnsweredAndSaysWhatItWasAt) {
  session.Start(now);
  EXPECT_EQ(session.OnTimer(now + kHandshake - 1ns, ""), Step::kWait);
  EXPECT_EQ(TimerAtDeadline("TLS handshake"), Step::kClose);
  EXPECT_EQ(session.failure().reason, CommandError::kTimeout);
  EXPECT_THAT(Why(), HasSubstr("within the timeout, at: TLS handshake"));
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
  LoginSessionTest() : SessionTest("hunter2") {}
};

TEST_F(LoginSessionTest, LogsInFirstAndBlamesTheLoginForItsOwnErrorsOnly) {
  session.Start(now);
  session.OnOpen(out);
  EXPECT_LT(out.find("AUTH"), out.find("SCRIPT"));
  EXPECT_THAT(Feed("+OK\r\n-NOPERM no permissions\r\n"), ElementsAre(Step::kClose));
  EXPECT_THAT(Why(), ::testing::StartsWith("the node says: NOPERM"));
}

TEST_F(LoginSessionTest, NeverRepeatsThePasswordThatTheNodeQuotes) {
  session.Start(now);
  session.OnOpen(out);
  Feed("-ERR unknown command 'AUTH', with args beginning with: 'hunter2'\r\n");
  EXPECT_THAT(Why(), HasSubstr("unknown command 'AUTH'"));
  EXPECT_THAT(Why(), ::testing::Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace fencepost::locking
