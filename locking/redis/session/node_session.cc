#include "locking/redis/session/node_session.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

#include "locking/base/check.h"
#include "locking/base/planted.h"
#include "locking/redis/session/handshake.h"
#include "locking/redis/session/node_error.h"

namespace fencepost::locking {
namespace {

constexpr Millis kMinBackoff{50};
constexpr Millis kMaxBackoff{2000};
constexpr Instant kNever = Instant::max();

std::string_view TextOf(const redisReply& reply) { return {reply.str, reply.len}; }

}  // namespace

void NodeSession::ReaderFree::operator()(redisReader* reader) const { redisReaderFree(reader); }
void NodeSession::ReplyFree::operator()(redisReply* reply) const { freeReplyObject(reply); }

NodeSession::NodeSession(SessionOptions options)
    : options_(std::move(options)), jitter_(options_.seed) {}

NodeSession::~NodeSession() = default;

// --- the handshake -------------------------------------------------------------------------------

NodeSession::Step NodeSession::Start(Instant now) {
  FENCEPOST_CHECK(stage_ == Stage::kDown, "a session is started twice");
  stage_ = Stage::kConnecting;
  turn_began_ = now;
  deadline_ = now + options_.handshake_timeout;
  if (reader_ == nullptr || !Planted("half_reply_survives_the_connection")) {
    reader_.reset(redisReaderCreate());
  }
  reader_->maxbuf = 0;  // its buffer stays, however big a batch's answer was
  return Step::kConnect;
}

NodeSession::Step NodeSession::OnOpen(std::string& out) {
  LoadScripts(true, out);
  return Step::kSend;
}

// The login is still valid, but the process behind the connection may be another one, or may have
// lost everything: the host asks for NodeInfo anew before it sends anything again.
NodeSession::Step NodeSession::Prepare(std::string& out) {
  LoadScripts(false, out);
  return Step::kSend;
}

void NodeSession::LoadScripts(bool login, std::string& out) {
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

void NodeSession::BeginTurn(Instant now) {
  FENCEPOST_CHECK(stage_ == Stage::kReady, "a turn begins within another");
  stage_ = Stage::kAsking;
  turn_began_ = now;
  deadline_ = now + options_.request_timeout;
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

void NodeSession::OnBytes(std::string_view bytes) {
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
}

NodeSession::Step NodeSession::Next(Instant now) {
  if (std::exchange(answered_, false)) return Step::kAnswered;
  while (stage_ != Stage::kDown) {
    void* raw = nullptr;
    if (redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
      return Fail({CommandError::kOther, fmt::format("this is not Redis: {}", reader_->errstr),
                   "check host and port, and whether the node expects TLS"},
                  now);
    }
    if (raw == nullptr) break;
    reply_.reset(static_cast<redisReply*>(raw));
    const Step step = TakeReply(now);
    if (step != Step::kWait) return step;
  }
  reply_.reset();
  return Step::kWait;
}

NodeSession::Step NodeSession::TakeReply(Instant now) {
  if (expected_ == 0) {  // as a server does that closes the connection: "max number of clients"
    return Fail(
        {CommandError::kOther, fmt::format("an answer to nothing: {}", TextOf(*reply_)), ""}, now);
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

NodeSession::Step NodeSession::OnPrepareReply(Instant now) {
  if (reply_->type == REDIS_REPLY_ERROR) return FailBy(TextOf(*reply_), now);
  login_expected_ = false;
  return expected_ == 0 ? Step::kPrepared : Step::kWait;
}

// --- time and trouble ----------------------------------------------------------------------------

NodeSession::Step NodeSession::OnTimer(Instant now, std::string_view doing) {
  if (now < deadline_) return Step::kWait;
  if (stage_ == Stage::kDown) return Start(now);
  if (!up_) {
    return Fail({CommandError::kTimeout,
                 fmt::format("no connection and login within the timeout{}{}",
                             doing.empty() ? "" : ", at: ", doing),
                 ""},
                now);
  }
  if (stalled_) return Fail({CommandError::kTimeout, "no answer for ten timeouts", ""}, now);
  stalled_ = true;
  deadline_ = std::max(turn_began_ + options_.timeouts_until_closed * options_.request_timeout,
                       now + options_.request_timeout);
  return Step::kStalled;
}

NodeSession::Step NodeSession::OnBroken(std::string_view why, Instant now) {
  return Fail({CommandError::kConnection, std::string(why), ""}, now);
}

NodeSession::Step NodeSession::FailBy(std::string_view text, Instant now) {
  const NodeError error = ReadNodeError(text);
  const char* const during = stage_ == Stage::kPreparing && login_expected_ ? "login: " : "";
  return Fail({error.reason, fmt::format("{}the node says: {}", during, error.text), error.hint},
              now);
}

NodeSession::Step NodeSession::Fail(SessionFailure failure, Instant now) {
  failure_ = std::move(failure);
  note_failure_ = notes_.Allows(failure_.what, now);
  if (up_ && now - up_since_ > kMaxBackoff) attempts_ = 0;
  deadline_ = now + DrawPause();
  ++attempts_;
  stage_ = Stage::kDown;
  expected_ = 0;
  lost_ = std::exchange(up_, false);
  answered_ = stalled_ = false;
  return Step::kClose;
}

// Between the shortest pause and one that doubles with each attempt, evenly.
Nanos NodeSession::DrawPause() {
  const int doubled = Planted("backoff_never_grows") ? 0 : std::min(attempts_, 10);
  const Millis most = std::min(kMaxBackoff, kMinBackoff * (2 << doubled));
  jitter_ = jitter_ * 6364136223846793005U + 1442695040888963407U;
  const auto span = static_cast<std::uint64_t>((most - kMinBackoff).count()) + 1;
  return kMinBackoff + Millis(static_cast<Millis::rep>((jitter_ >> 33) % span));
}

}  // namespace fencepost::locking
