#include "locking/redis/node/connection.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

#include "locking/base/planted.h"
#include "locking/redis/wire.h"

namespace fencepost::locking {
namespace {

SessionOptions SessionOf(const ConnectionOptions& options) {
  SessionOptions session = options.Session();
  session.scripts = AllScripts();
  return session;
}

}  // namespace

Connection::Connection(asio::io_context& io, ConnectionOptions options, NodeClient& client)
    : options_(std::move(options)),
      client_(client),
      pump_(io, options_, SessionOf(options_), *this),
      session_(pump_.session()),
      now_(pump_.now()) {}

NodeSession::Step Connection::OnStep(Step step) {
  switch (step) {
    case Step::kPrepared:
      BeginProbe();
      break;
    case Step::kReply:
      return OnAnswer(session_.reply());
    case Step::kAnswered:
      return OnAllAnswers();
    case Step::kStalled:
      Stall();
      break;
    case Step::kClose:
      Close();
      break;
    default:  // the pump's own
      break;
  }
  return Step::kWait;
}

void Connection::BeginProbe() { Sent(Request::kProbe, probe_.Begin(pump_.out())); }

NodeSession::Step Connection::FinishProbe() {
  NodeInfo& info = probe_.info();
  if (!not_primary_.empty()) info.role = "slave";  // it has just answered as one
  if (info.role == "slave") return LeaveReplica();
  const NodeSession::Back back = session_.Up(now_.boot);
  if (back.reconnect) client_.OnReconnect();
  if (back.newly_up) away_ = {};
  if (back.note) {
    client_.OnNote(Severity::kInfo, "redis_node_back",
                   fmt::format("{}: the lock node answers again", options_.address.text));
  }
  plain_.OnSentinel(info.sentinel);
  client_.OnConnected(info, now_);
  if (batch_.Active() && client_.Open()) {
    SendBatch();
    return Step::kWait;
  }
  HandBack(ReplyCode::kConnection);
  BecomeIdle();
  return Step::kWait;
}

// The primary may be at another address of the name by now. The store is told: what this one has is
// another's, should it be a primary again.
NodeSession::Step Connection::LeaveReplica() {
  client_.OnConnected(probe_.info(), now_);
  if (!session_.up()) client_.OnDisconnected(now_);
  const std::string said = std::exchange(not_primary_, "");
  if (!said.empty()) return session_.FailBy(said, now_.boot);
  const NodeError replica = ReadNodeError("READONLY");
  return session_.Fail({replica.reason, "its role is 'slave'", replica.hint, replica.away},
                       now_.boot);
}

// --- sending -------------------------------------------------------------------------------------

void Connection::Pump() {
  if (session_.stage() != NodeSession::Stage::kReady) return;
  const bool probe = !not_primary_.empty();
  std::optional<StoreCommand> command;
  if (!probe) command = client_.TakeCommand();
  if (!probe && !command && (!client_.Open() || client_.TakeBatch(batch_.ops()) == 0)) return;
  pump_.BeginTurn(options_.lock.node_timeout);
  if (probe || (command && command->kind == StoreCommand::Kind::kProbe)) {
    BeginProbe();
  } else if (command) {
    BeginWrite(command->write);
  } else {
    batch_.Cut();
    wiped_ = false;
    SendBatch();
  }
}

void Connection::BeginWrite(const SentinelWrite& write) {
  write_refused_ = false;
  FormatSentinelWrite(write, pump_.out());
  Sent(Request::kWrite, 1);
}

void Connection::Sent(Request request, std::size_t answers) {
  using Late = NodeSession::Late;
  request_ = request;
  session_.Ask(answers, request == Request::kBatch ? Late::kDropped : Late::kDelivered);
  sent_at_ = BootClock::now();
  pump_.Flush();
}

// --- answers -------------------------------------------------------------------------------------

NodeSession::Step Connection::OnAnswer(const redisReply& reply) {
  switch (request_) {
    case Request::kProbe:
      return OnProbeAnswer(reply);
    case Request::kWrite:
      return OnWriteAnswer(reply);
    case Request::kBatch:
      OnBatchAnswer(reply);
      break;
  }
  return Step::kWait;
}

NodeSession::Step Connection::OnProbeAnswer(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) {
    const NodeError error = ReadNodeError(TextOf(reply));
    const bool not_primary = error.kind == NodeErrorKind::kNotPrimary;
    const bool may_refuse = not_primary || (probe_.AsksInfo() && !options_.lock.quarantine);
    if (!may_refuse || !probe_.OnRefusal()) return session_.FailBy(TextOf(reply), now_.boot);
    if (not_primary) not_primary_ = error.text;
  } else if (!probe_.OnAnswer(reply)) {
    return session_.Fail(
        {CommandError::kOther, "INFO, TIME or GET was not answered as Redis does", ""}, now_.boot);
  }
  probe_.info().call.sent_at = sent_at_;
  probe_.info().call.received_at = now_.boot;
  return Step::kWait;
}

NodeSession::Step Connection::OnWriteAnswer(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) {
    const NodeError error = ReadNodeError(TextOf(reply));
    if (error.kind != NodeErrorKind::kNoScript) return session_.FailBy(TextOf(reply), now_.boot);
    client_.OnCommandError(error.reason);
    write_refused_ = true;
    return Step::kWait;
  }
  auto answer = ParseSentinelWrite(reply.type == REDIS_REPLY_STRING ? TextOf(reply) : "");
  if (!answer) return session_.Fail({CommandError::kOther, answer.error(), ""}, now_.boot);
  plain_.OnSentinel(answer->current);
  client_.OnSentinel(std::move(answer->current), {sent_at_, now_.boot, answer->node_time}, now_);
  return Step::kWait;
}

NodeSession::Step Connection::OnAllAnswers() {
  switch (request_) {
    case Request::kProbe:
      return FinishProbe();
    case Request::kWrite:
      if (std::exchange(write_refused_, false)) return session_.Prepare(pump_.out());
      BecomeIdle();
      break;
    case Request::kBatch:
      return FinishBatch();
  }
  return Step::kWait;
}

void Connection::BecomeIdle() {
  if (session_.EndTurn()) client_.OnStalled(false, now_);
  client_.OnIdle();
}

// --- a batch: sent, answered, resent where necessary, handed back --------------------------------

void Connection::SendBatch() {
  no_scripts_ = false;
  const std::size_t answers = batch_.Write(options_.lock, pump_.out(), &plain_, now_);
  Sent(Request::kBatch, answers);
}

void Connection::OnBatchAnswer(const redisReply& reply) {
  if (batch_.NextIsPlain()) {
    if (plain_.OnAnswer(reply)) {
      OnPlainAnswers();
    } else {
      plain_.OnNils(session_.TakeNils(plain_.NamesLeft()));
    }
    return;
  }
  if (reply.type == REDIS_REPLY_ERROR) return OnBatchError(TextOf(reply));
  const bool text = reply.type == REDIS_REPLY_STRING;
  const NodeBatch::Call call = batch_.Next();
  const auto header = batch_.OnText(text ? TextOf(reply) : std::string_view());
  if (!header) {
    OnRefusal(header.error(), {});
    return;
  }
  const CallInfo info{sent_at_, now_.boot, header->node_time};
  plain_.OnCall(info);
  Answered(call.kind, call.keys, info);
}

void Connection::OnPlainAnswers() {
  const std::size_t keys = batch_.Next().keys;
  const PlainAcquire::Judgement& judgement = batch_.OnPlain(plain_, options_.lock);
  if (!judgement.error.empty()) {
    const NodeError error = ReadNodeError(judgement.error);
    OnRefusal(error.text, error);
    return;
  }
  if (judgement.no_sentinel) {
    if (!std::exchange(wiped_, true)) client_.OnNoSentinel(now_);
    return;
  }
  if (!judgement.refusal.empty()) {
    OnRefusal(judgement.refusal, {});
  }
  const CallInfo info{sent_at_, now_.boot, judgement.header.node_time};
  plain_.OnCall(info);
  const auto elsewhere =
      static_cast<std::size_t>(std::ranges::count(judgement.fates, PlainAcquire::Fate::kAskScript));
  if (Planted("plain_acquire_tells_no_clock")) return;
  if (keys > elsewhere) Answered(OpKind::kAcquire, keys - elsewhere, info);
}

void Connection::OnBatchError(std::string_view text) {
  const NodeError error = ReadNodeError(text);
  if (error.kind == NodeErrorKind::kNoSentinel) {
    plain_.OnSentinel(std::nullopt);
    batch_.OnError(ReplyCode::kNoSentinel);
    if (!std::exchange(wiped_, true)) client_.OnNoSentinel(now_);
    return;
  }
  if (error.kind == NodeErrorKind::kNoScript) {
    client_.OnCommandError(error.reason);
    no_scripts_ = batch_.OnNoScript() || no_scripts_;
    return;
  }
  batch_.OnError(ReplyCode::kError);
  OnRefusal(error.text, error);
}

NodeSession::Step Connection::FinishBatch() {
  if (batch_.Active() && no_scripts_ && batch_.PrepareResend()) {
    return session_.Prepare(pump_.out());
  }
  const bool scripts_left = batch_.Active() && !no_scripts_ && batch_.CallsUnsettled() > 0;
  if (scripts_left && client_.Open()) {  // those that plain_ left to them
    SendBatch();
    return Step::kWait;
  }
  HandBack(ReplyCode::kConnection);
  BecomeIdle();
  return Step::kWait;
}

// `rest`: the answer to what is not settled.
void Connection::HandBack(ReplyCode rest) {
  if (!batch_.Active()) return;
  batch_.SettleRest(rest);
  client_.OnReplies(batch_.replies(), now_);
  batch_.Clear();
}

void Connection::OnRefusal(std::string_view text, const NodeError& error) {
  client_.OnCommandError(error.reason);
  if (error.kind == NodeErrorKind::kNotPrimary) not_primary_ = error.text;
  refusal_ = fmt::format("the lock node refuses calls: {}{}{}", text,
                         error.hint.empty() ? "" : "; ", error.hint);
  refused_at_ = now_.boot;
  if (!refusal_notes_.Allows(error.reason, now_.boot)) return;
  client_.OnNote(Severity::kWarn, "redis_call_refused",
                 fmt::format("{}: {}", options_.address.text, refusal_));
}

void Connection::Answered(OpKind kind, std::size_t keys, const CallInfo& call) {
  if (kind == OpKind::kAcquire) refusal_.clear();
  client_.OnCall(kind, keys, call, now_);
}

// --- time and trouble ----------------------------------------------------------------------------

void Connection::Stall() {
  const std::size_t calls = std::max<std::size_t>(batch_.CallsUnsettled(), 1);
  for (std::size_t i = 0; i < calls; ++i) client_.OnCommandError(CommandError::kTimeout);
  client_.OnStalled(true, now_);
  HandBack(ReplyCode::kTimeout);
}

void Connection::Close() {
  plain_.Forget();
  refusal_.clear();
  not_primary_.clear();
  const SessionFailure& failure = session_.failure();
  client_.OnCommandError(failure.reason);
  away_ = {failure.away, failure.Text()};
  if (session_.note_failure()) {
    client_.OnNote(
        Severity::kWarn, "redis_node_away",
        fmt::format("{}: the lock node is unavailable: {}", options_.address.text, away_.detail));
  }
  if (session_.lost()) client_.OnDisconnected(now_);
  HandBack(ReplyCode::kConnection);
  client_.OnIdle();
}

}  // namespace fencepost::locking
