// A batch at one connection: sent, answered, resent where necessary, handed back.
#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

#include "locking/base/planted.h"
#include "locking/redis/node/connection.h"

namespace fencepost::locking {
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
  const Batch::Call call = batch_.Next();
  const auto header = batch_.OnText(text ? TextOf(reply) : std::string_view());
  if (!header) {
    OnRefusal(header.error(), {});
    return;
  }
  const CallInfo info{sent_at_, now_.boot, header->node_time};
  plain_.OnCall(info);
  client_.OnCall(call.kind, call.keys, info, now_);
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
  if (keys > elsewhere) client_.OnCall(OpKind::kAcquire, keys - elsewhere, info, now_);
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
  if (error.kind == NodeErrorKind::kReplica) replica_seen_ = true;
  OnRefusal(error.text, error);
}

NodeSession::Step Connection::FinishBatch() {
  if (batch_.Active() && no_scripts_ && batch_.PrepareResend()) {
    return session_.Prepare(pump_.out());
  }
  if (batch_.Active() && !no_scripts_ && batch_.CallsUnsettled() > 0) {  // the script's, by plain_
    if (client_.Open()) {
      SendBatch();
      return Step::kWait;
    }
    batch_.SettleRest(ReplyCode::kConnection);
  }
  if (batch_.Active()) HandBack();
  BecomeIdle();
  return Step::kWait;
}

void Connection::HandBack() {
  client_.OnReplies(batch_.replies(), now_);
  batch_.Clear();
}

void Connection::OnRefusal(std::string_view text, const NodeError& error) {
  client_.OnCommandError(error.reason);
  if (!refusal_notes_.Allows(error.reason, now_.boot)) return;
  client_.OnNote(Severity::kWarn, "redis_call_refused",
                 fmt::format("{}: the lock node refuses calls: {}{}{}", options_.address.text, text,
                             error.hint.empty() ? "" : "; ", error.hint));
}

}  // namespace fencepost::locking
