#include "locking/redis/node/connection.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

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

void Connection::FinishProbe() {
  NodeInfo& info = probe_.info();
  const NodeSession::Back back = session_.Up(now_.boot);
  if (back.reconnect) client_.OnReconnect();
  if (back.newly_up) away_ = {};
  if (back.note) {
    client_.OnNote(Severity::kInfo, "redis_node_back",
                   fmt::format("{}: the lock node answers again", options_.address.text));
  }
  replica_seen_ = false;
  plain_.OnSentinel(info.sentinel);
  client_.OnConnected(info, now_);
  if (batch_.Active() && client_.Open()) return SendBatch();
  if (batch_.Active()) {
    batch_.SettleRest(ReplyCode::kConnection);
    HandBack();
  }
  BecomeIdle();
}

// --- sending -------------------------------------------------------------------------------------

void Connection::Pump() {
  if (session_.stage() != NodeSession::Stage::kReady) return;
  const bool probe = replica_seen_;
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
      if (reply.type == REDIS_REPLY_ERROR) return session_.FailBy(TextOf(reply), now_.boot);
      if (!probe_.OnAnswer(reply)) {
        return session_.Fail(
            {CommandError::kOther, "INFO, TIME or GET was not answered as Redis does", ""},
            now_.boot);
      }
      probe_.info().call.sent_at = sent_at_;
      probe_.info().call.received_at = now_.boot;
      break;
    case Request::kWrite:
      return OnWriteAnswer(reply);
    case Request::kBatch:
      OnBatchAnswer(reply);
      break;
  }
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
      FinishProbe();
      break;
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

// --- time and trouble ----------------------------------------------------------------------------

void Connection::Stall() {
  const std::size_t calls = std::max<std::size_t>(batch_.CallsUnsettled(), 1);
  for (std::size_t i = 0; i < calls; ++i) client_.OnCommandError(CommandError::kTimeout);
  client_.OnStalled(true, now_);
  if (!batch_.Active()) return;
  batch_.SettleRest(ReplyCode::kTimeout);
  HandBack();
}

void Connection::Close() {
  plain_.Forget();
  const SessionFailure& failure = session_.failure();
  client_.OnCommandError(failure.reason);
  away_ = {failure.away, failure.Text()};
  if (session_.note_failure()) {
    client_.OnNote(
        Severity::kWarn, "redis_node_away",
        fmt::format("{}: the lock node is unavailable: {}", options_.address.text, away_.detail));
  }
  if (session_.lost()) client_.OnDisconnected(now_);
  if (batch_.Active()) {
    batch_.SettleRest(ReplyCode::kConnection);
    HandBack();
  }
  client_.OnIdle();
}

}  // namespace fencepost::locking
