// The session with one lock node, as a machine without a socket and without a clock: what happened
// goes in, the next step comes out. A host (session_pump.h) owns the transport and the timer,
// passes on their events, and carries out the step.
//
// clang-format off
//   down ──deadline──▶ connecting ──OnOpen──▶ preparing ──kPrepared──▶ asking ◀──▶ ready
//    ▲                     │              (AUTH, SCRIPT LOAD)  ▲          │
//    │                     │                   └── Prepare ────┼──────────┤ NOSCRIPT
//    └──── kClose ◀────────┴───────────────────────────────────┴──────────┘ broken, late, garbage
// clang-format on
//
// One request is outstanding at a time: the host appends it to the transport's buffer, says how
// many replies it expects (Ask), and gets them one by one in order. A turn is a chain of requests
// under one deadline: the handshake (ended by Up and EndTurn), or BeginTurn to EndTurn. A turn that
// exceeds its deadline before the session was up closes it; later it stalls it: the replies are
// still expected, until timeouts_until_closed have passed since the turn began. Replies to a
// request that is Late::kDropped are then discarded.
//
// A host that subscribes calls Listen once prepared: from then on every reply is delivered as it
// comes, and kCheck asks for a sign of life after each check_every. A node that sent nothing from
// one check to the next closes the session.
//
// After OnBytes, OnOpen, OnBroken and OnTimer the host reads deadline() and calls OnTimer then.
// After OnBytes it calls Next until it says kWait. Invariant: a reply that is delivered belongs to
// the request that Ask announced last. All errors are kClose with failure(); every instant comes
// from the caller. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "locking/base/types.h"
#include "locking/core/observer.h"
#include "locking/redis/node_unavailable.h"
#include "locking/redis/wire.h"

struct redisReader;
struct redisReply;

namespace fencepost::locking {

struct SessionOptions {
  std::string username;  // empty: AUTH with the password alone
  std::string password;  // empty: no AUTH
  std::span<const Script* const> scripts;
  Nanos handshake_timeout{};  // from connecting to Up or Listen
  int timeouts_until_closed = 10;
  Nanos check_every{};     // while listening
  Nanos refusal_pause{};   // at most, after a login or a right was refused; 0: as after any failure
  std::uint64_t seed = 0;  // of the jitter
};

struct SessionFailure {
  CommandError reason = CommandError::kConnection;
  std::string what;
  std::string hint;  // what to do; may be empty
  UnavailableReason away = UnavailableReason::kOther;
  bool at_login = false;  // AUTH was refused
  [[nodiscard]] std::string Text() const {
    return (at_login ? "login: " : "") + what + (hint.empty() ? "" : "; " + hint);
  }
};

struct ReplyFree {
  void operator()(redisReply* reply) const;
};
using ReplyPtr = std::unique_ptr<redisReply, ReplyFree>;

class NodeSession {
 public:
  enum class Stage : std::uint8_t { kDown, kConnecting, kPreparing, kAsking, kReady, kListening };
  enum class Step : std::uint8_t {
    kWait,      // nothing to do before the next event
    kConnect,   // connect again: OnOpen or OnBroken follows
    kSend,      // what was appended to the buffer is to be sent
    kPrepared,  // logged in, scripts loaded: ask, end the turn, or listen
    kReply,     // reply() is the next one; good until Next is called again
    kAnswered,  // all replies to the request are there: ask, or end the turn
    kStalled,   // the turn exceeded its deadline
    kCheck,     // listening: send something that the node answers
    kClose,     // failure() says why: discard the connection; deadline() says when to try again
  };
  enum class Late : std::uint8_t { kDelivered, kDropped };
  struct Back {
    bool newly_up = false;   // it was not up before
    bool reconnect = false;  // and it had been up earlier
    bool note = false;       // a failure was noted since
  };

  explicit NodeSession(SessionOptions options);
  ~NodeSession();
  NodeSession(const NodeSession&) = delete;
  NodeSession& operator=(const NodeSession&) = delete;

  // --- events ----------------------------------------------------------------------------------
  Step Start(Instant now);  // kConnect
  // Of the login that follows; before OnOpen.
  void SetPassword(std::string password) { options_.password = std::move(password); }
  Step OnOpen(std::string& out);
  void OnBytes(std::string_view bytes);
  Step Next(Instant now);
  Step OnBroken(std::string_view why, Instant now,
                UnavailableReason away = UnavailableReason::kOther);
  // `doing`: what the transport is at, for the message; may be empty. `late`: what it means that
  // this takes too long.
  Step OnTimer(Instant now, std::string_view doing,
               UnavailableReason late = UnavailableReason::kTimeout);
  // The host cannot use the node: a bad option, or a reply of the wrong form.
  Step Fail(SessionFailure failure, Instant now);
  // The same, by the text of an error reply.
  Step FailBy(std::string_view error, Instant now);
  // The host discards the connection and wants no other before it calls Start.
  void Stop();

  // --- requests --------------------------------------------------------------------------------
  void BeginTurn(Instant now, Nanos timeout);  // in ready
  void Ask(std::size_t replies, Late late);
  // Loads the scripts again, within the turn.
  Step Prepare(std::string& out);
  Back Up(Instant now);
  bool EndTurn();  // whether it was stalled
  void Listen(Instant now);

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] bool stalled() const { return stalled_; }
  [[nodiscard]] Instant deadline() const { return deadline_; }  // max(): none
  [[nodiscard]] const redisReply& reply() const { return *reply_; }
  ReplyPtr KeepReply() { return std::move(reply_); }  // beyond Next
  // After kReply: takes replies that are nil and have come already, at most so many and never the
  // request's last one, without making a reply of each. Returns how many.
  std::size_t TakeNils(std::size_t most);
  [[nodiscard]] const SessionFailure& failure() const { return failure_; }
  [[nodiscard]] bool lost() const { return lost_; }  // by the failure: it had been up
  // Whether the failure is worth a line in the log: a new reason after a second, the same again
  // after a minute.
  [[nodiscard]] bool note_failure() const { return note_failure_; }

 private:
  struct ReaderFree {
    void operator()(redisReader* reader) const;
  };

  void LogInAndLoadScripts(bool login, std::string& out);
  Step TakeReply(Instant now);
  Step FailAsNotRedis(std::string_view why, Instant now);
  Step OnPrepareReply(Instant now);
  Step OnCheckDue(Instant now);
  [[nodiscard]] Nanos DrawReconnectBackoff();

  SessionOptions options_;
  std::uint64_t jitter_;
  std::unique_ptr<redisReader, ReaderFree> reader_;
  ReplyPtr reply_;
  std::size_t unread_ = 0;  // bytes that have come since the last reply

  Stage stage_ = Stage::kDown;
  std::size_t expected_ = 0;  // replies; 0 unless preparing or asking
  bool answered_ = false;     // the last reply was delivered, kAnswered was not
  Late late_ = Late::kDelivered;
  bool login_expected_ = false;
  bool stalled_ = false;
  bool check_out_ = false;  // and nothing came since
  bool up_ = false;
  bool was_up_ = false;
  int attempts_ = 0;  // failed in a row
  Instant up_since_{};
  Instant turn_began_{};
  Nanos turn_timeout_{};
  Instant deadline_ = Instant::max();

  SessionFailure failure_;
  bool lost_ = false;
  bool note_failure_ = false;
  NoteLimit<std::string> notes_;  // of failures, by what failed; over once the node was up again
};

}  // namespace fencepost::locking
