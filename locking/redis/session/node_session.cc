#include "locking/redis/session/node_session.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

#include "locking/base/check.h"
#include "locking/base/planted.h"
#include "locking/redis/session/node_error.h"
#include "locking/redis/session/node_probe.h"

namespace fencepost::locking {
namespace {

constexpr Millis kMinBackoff{50};
constexpr Millis kMaxBackoff{2000};
constexpr Instant kNever = Instant::max();

// What an answer may be, many times what any of ours is (the largest: a page of SCAN). The reader
// makes room for an array as soon as its length has come, and keeps what has come of an answer.
constexpr std::size_t kMostElements = 65'536;
constexpr int kMostNested = 8;  // hiredis frees a reply by recursion, and from 1.0 on has no bound
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

const redisReplyObjectFunctions& Unbounded() {
  static const redisReplyObjectFunctions kFunctions = [] {
    redisReader* reader = redisReaderCreate();
    const redisReplyObjectFunctions functions = *reader->fn;
    redisReaderFree(reader);
    return functions;
  }();
  return kFunctions;
}

template <class Size>  // int, or size_t from hiredis 1.0 on
void* CreateArray(const redisReadTask* task, Size elements) {
  int nested = 0;
  for (const redisReadTask* at = task; at != nullptr; at = at->parent) ++nested;
  if (nested > kMostNested || static_cast<std::size_t>(elements) > kMostElements) return nullptr;
  return Unbounded().createArray(task, elements);
}

redisReader* CreateReader() {
  static redisReplyObjectFunctions bounded = [] {
    redisReplyObjectFunctions functions = Unbounded();
    functions.createArray = CreateArray;
    return functions;
  }();
  return redisReaderCreateWithFunctions(&bounded);
}

}  // namespace

void NodeSession::ReaderFree::operator()(redisReader* reader) const { redisReaderFree(reader); }
void ReplyFree::operator()(redisReply* reply) const { freeReplyObject(reply); }

NodeSession::NodeSession(SessionOptions options)
    : options_(std::move(options)), jitter_(options_.seed) {}

NodeSession::~NodeSession() = default;

// --- the handshake -------------------------------------------------------------------------------

NodeSession::Step NodeSession::Start(Instant now) {
  FENCEPOST_CHECK(stage_ == Stage::kDown, "a session is started twice");
  stage_ = Stage::kConnecting;
  turn_began_ = now;
  turn_timeout_ = options_.handshake_timeout;
  deadline_ = now + turn_timeout_;
  if (reader_ == nullptr || !Planted("half_reply_survives_the_connection")) {
    reader_.reset(CreateReader());
    unread_ = 0;
  }
  reader_->maxbuf = 0;  // its buffer stays, however big a batch's answer was
  return Step::kConnect;
}

NodeSession::Step NodeSession::OnOpen(std::string& out) {
  LogInAndLoadScripts(true, out);
  return expected_ == 0 ? Step::kPrepared : Step::kSend;
}

// The login is still valid, but the process behind the connection may be another one, or may have
// lost everything: the host asks for NodeInfo again before it sends anything again.
NodeSession::Step NodeSession::Prepare(std::string& out) {
  LogInAndLoadScripts(false, out);
  return Step::kSend;
}

void NodeSession::LogInAndLoadScripts(bool login, std::string& out) {
  stage_ = Stage::kPreparing;
  login_expected_ = login && !options_.password.empty();
  if (login_expected_ && options_.username.empty()) {
    AppendCommand({"AUTH", options_.password}, out);
  } else if (login_expected_) {
    AppendCommand({"AUTH", options_.username, options_.password}, out);
  }
  for (const Script* script : options_.scripts) {
    AppendCommand({"SCRIPT", "LOAD", script->text}, out);
  }
  expected_ = options_.scripts.size() + (login_expected_ ? 1 : 0);
}

NodeSession::Back NodeSession::Up(Instant now) {
  if (up_) return {};
  up_since_ = now;
  up_ = true;
  return {true, std::exchange(was_up_, true), notes_.End()};
}

// --- requests and replies ------------------------------------------------------------------------

void NodeSession::BeginTurn(Instant now, Nanos timeout) {
  FENCEPOST_CHECK(stage_ == Stage::kReady, "a turn begins within another");
  stage_ = Stage::kAsking;
  turn_began_ = now;
  turn_timeout_ = timeout;
  deadline_ = Planted("request_has_no_deadline") ? kNever : now + timeout;
}

void NodeSession::Ask(std::size_t replies, Late late) {
  FENCEPOST_CHECK(expected_ == 0 && replies > 0, "a request while another one is out");
  stage_ = Stage::kAsking;
  expected_ = replies;
  late_ = late;
}

bool NodeSession::EndTurn() {
  stage_ = Stage::kReady;
  deadline_ = kNever;
  return std::exchange(stalled_, false);
}

void NodeSession::Listen(Instant now) {
  stage_ = Stage::kListening;
  check_out_ = false;
  deadline_ = now + options_.check_every;
}

void NodeSession::OnBytes(std::string_view bytes) {
  check_out_ = false;
  unread_ += bytes.size();
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
}

NodeSession::Step NodeSession::Next(Instant now) {
  if (std::exchange(answered_, false)) return Step::kAnswered;
  while (stage_ != Stage::kDown) {
    void* raw = nullptr;
    if (redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
      return FailAsNotRedis(reader_->err == REDIS_ERR_OOM
                                ? "an answer of too many or too deeply nested elements"
                                : reader_->errstr,
                            now);
    }
    if (raw == nullptr && unread_ > kMostBytes) {
      return FailAsNotRedis("an answer of too many bytes", now);
    }
    if (raw == nullptr) break;
    reply_.reset(static_cast<redisReply*>(raw));
    unread_ = reader_->len - reader_->pos;
    const Step step = TakeReply(now);
    if (step != Step::kWait) return step;
  }
  reply_.reset();
  return Step::kWait;
}

NodeSession::Step NodeSession::FailAsNotRedis(std::string_view why, Instant now) {
  return Fail({CommandError::kOther, fmt::format("this is not Redis: {}", why),
               "check host and port, and whether the node expects TLS"},
              now);
}

NodeSession::Step NodeSession::TakeReply(Instant now) {
  if (stage_ == Stage::kListening) return Step::kReply;
  if (expected_ == 0) {  // as a server does that closes the connection: "max number of clients"
    return Fail({CommandError::kOther,
                 fmt::format("unexpected reply: no request is outstanding: {}",
                             ShownOfNode(TextOf(*reply_))),
                 ""},
                now);
  }
  --expected_;
  if (stage_ == Stage::kPreparing) return OnPrepareReply(now);
  const bool dropped = stalled_ && late_ == Late::kDropped;
  if (dropped && !Planted("late_reply_is_delivered")) {
    return expected_ == 0 ? Step::kAnswered : Step::kWait;
  }
  answered_ = expected_ == 0;
  return Step::kReply;
}

std::size_t NodeSession::TakeNils(std::size_t most) {
  constexpr std::string_view kNil = "$-1\r\n";
  const bool between_replies = stage_ == Stage::kAsking && reader_->ridx == -1;
  if (!between_replies || expected_ == 0) return 0;
  const std::string_view come(reader_->buf + reader_->pos, reader_->len - reader_->pos);
  most = std::min(most, expected_ - 1);
  std::size_t taken = 0;
  while (taken < most && come.substr(taken * kNil.size(), kNil.size()) == kNil) ++taken;
  reader_->pos += taken * kNil.size();
  unread_ -= taken * kNil.size();
  expected_ -= taken;
  return taken;
}

NodeSession::Step NodeSession::OnPrepareReply(Instant now) {
  if (reply_->type == REDIS_REPLY_ERROR) return FailBy(TextOf(*reply_), now);
  login_expected_ = false;
  return expected_ == 0 ? Step::kPrepared : Step::kWait;
}

// --- time and trouble ----------------------------------------------------------------------------

NodeSession::Step NodeSession::OnTimer(Instant now, std::string_view doing,
                                       UnavailableReason late) {
  if (now < deadline_) return Step::kWait;
  if (stage_ == Stage::kDown) return Start(now);
  if (stage_ == Stage::kListening) return OnCheckDue(now);
  if (!up_) {
    return Fail({CommandError::kTimeout,
                 fmt::format("no connection and login within the timeout{}{}",
                             doing.empty() ? "" : ", at: ", doing),
                 "", late},
                now);
  }
  if (stalled_)
    return Fail(
        {CommandError::kTimeout, "no answer for ten timeouts", "", UnavailableReason::kTimeout},
        now);
  stalled_ = true;
  deadline_ =
      std::max(turn_began_ + options_.timeouts_until_closed * turn_timeout_, now + turn_timeout_);
  return Step::kStalled;
}

NodeSession::Step NodeSession::OnCheckDue(Instant now) {
  const bool silent = std::exchange(check_out_, true) && !Planted("silent_node_is_kept");
  if (silent)
    return Fail({CommandError::kTimeout, "no answer", "", UnavailableReason::kTimeout}, now);
  deadline_ = now + options_.check_every;
  return Step::kCheck;
}

NodeSession::Step NodeSession::OnBroken(std::string_view why, Instant now, UnavailableReason away) {
  return Fail({CommandError::kConnection, std::string(why), "", away}, now);
}

NodeSession::Step NodeSession::FailBy(std::string_view text, Instant now) {
  const NodeError error = ReadNodeError(text);
  const bool login = stage_ == Stage::kPreparing && login_expected_;
  const UnavailableReason away =
      login && error.away == UnavailableReason::kOther ? UnavailableReason::kLogin : error.away;
  return Fail({error.reason, fmt::format("the node says: {}", error.text), error.hint, away, login},
              now);
}

NodeSession::Step NodeSession::Fail(SessionFailure failure, Instant now) {
  failure_ = std::move(failure);
  if (failure_.what.ends_with('.')) failure_.what.pop_back();
  note_failure_ = notes_.Allows(failure_.what, now);
  if (up_ && now - up_since_ > kMaxBackoff) attempts_ = 0;
  lost_ = up_;
  Stop();
  deadline_ = now + DrawReconnectBackoff();
  ++attempts_;
  return Step::kClose;
}

void NodeSession::Stop() {
  stage_ = Stage::kDown;
  deadline_ = kNever;
  expected_ = 0;
  up_ = answered_ = stalled_ = false;
}

// Evenly between the shortest pause and one that doubles with each attempt; after a refusal, which
// only a person ends, between half of its pause and all of it.
Nanos NodeSession::DrawReconnectBackoff() {
  const int doubled = Planted("backoff_never_grows") ? 0 : std::min(attempts_, 10);
  Nanos least = kMinBackoff;
  Nanos most = std::min(kMaxBackoff, kMinBackoff * (2 << doubled));
  if (failure_.reason == CommandError::kAuth && options_.refusal_pause > Nanos(0)) {
    most = options_.refusal_pause;
    least = most / 2;
  }
  jitter_ = jitter_ * 6364136223846793005U + 1442695040888963407U;
  const auto span = static_cast<std::uint64_t>((most - least) / Millis(1)) + 1;
  return least + Millis(static_cast<Millis::rep>((jitter_ >> 33) % span));
}

}  // namespace fencepost::locking
