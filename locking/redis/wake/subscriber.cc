#include "locking/redis/wake/subscriber.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <utility>

#include "locking/redis/session/node_error.h"
#include "locking/redis/session/node_probe.h"
#include "locking/redis/wire.h"

namespace fencepost::locking {
namespace {

using Stage = NodeSession::Stage;

constexpr Millis kBetweenChecks{5000};
constexpr Millis kAfterRefusal{60'000};
constexpr std::size_t kMostUnwanted = 1000;

SessionOptions WatchingSession(const ConnectionOptions& options) {
  SessionOptions session = options.Session();
  session.check_every = kBetweenChecks;
  session.refusal_pause = kAfterRefusal;
  return session;
}

}  // namespace

Subscriber::Subscriber(asio::io_context& io, ConnectionOptions options, SubscriberClient& client)
    : options_(std::move(options)),
      client_(client),
      pump_(io, options_, WatchingSession(options_), *this) {}

void Subscriber::Watch(const std::string& name) {
  watched_.insert(name);
  if (Subscribed()) {
    Send("SUBSCRIBE", name);
    pump_.Flush();
  } else if (!Connected() && pump_.session().deadline() == Instant::max()) {
    pump_.Start();
  }
}

void Subscriber::Unwatch(const std::string& name) {
  watched_.erase(name);
  if (!Subscribed()) return;
  if (may_unsubscribe_) {
    Send("UNSUBSCRIBE", name);
    pump_.Flush();
  } else if (++unwanted_ > kMostUnwanted) {
    pump_.Stop();
    if (!watched_.empty()) pump_.Start();
  }
}

NodeSession::Step Subscriber::OnStep(Step step) {
  if (step == Step::kReply) return OnReply(pump_.session().reply());
  if (step == Step::kPrepared) {
    Subscribe();
  } else if (step == Step::kCheck) {
    Check();
  } else if (step == Step::kClose) {
    Note();
  }
  return Step::kWait;
}

void Subscriber::Subscribe() {
  unconfirmed_ = 0;
  unwanted_ = 0;
  for (const std::string& name : watched_) Send("SUBSCRIBE", name);
  pump_.Listen();
  pump_.Flush();
}

// A SUBSCRIBE that changes nothing; PING would be one more command to allow.
void Subscriber::Check() {
  if (watched_.empty()) return pump_.Stop();
  Send("SUBSCRIBE", *watched_.begin());
  pump_.Flush();
}

void Subscriber::Send(std::string_view command, std::string_view name) {
  AppendCommand({command, name}, pump_.out());
  ++unconfirmed_;
}

NodeSession::Step Subscriber::OnReply(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) return OnRefusal(TextOf(reply));
  const bool push = reply.type == REDIS_REPLY_ARRAY && reply.elements == 3 &&
                    reply.element[0]->type == REDIS_REPLY_STRING;
  const std::string_view what = push ? TextOf(*reply.element[0]) : std::string_view();
  if (what == "message" && reply.element[1]->type == REDIS_REPLY_STRING) {
    client_.OnFreed(TextOf(*reply.element[1]));
  } else if ((what == "subscribe" || what == "unsubscribe") && unconfirmed_ > 0) {
    if (--unconfirmed_ == 0) OnConfirmed();
  } else {
    return pump_.session().Fail(
        {CommandError::kOther, "unexpected reply: no request is outstanding", ""},
        pump_.now().boot);
  }
  return Step::kWait;
}

NodeSession::Step Subscriber::OnRefusal(std::string_view text) {
  const NodeError error = ReadNodeError(text);
  const bool denied = error.reason == CommandError::kAuth;
  if (denied && text.find("'unsubscribe'") != std::string_view::npos && unconfirmed_ > 0) {
    --unconfirmed_;  // optional: the channels are left subscribed
    ++unwanted_;
    may_unsubscribe_ = false;
    return Step::kWait;
  }
  return pump_.session().FailBy(text, pump_.now().boot);
}

void Subscriber::OnConfirmed() {
  pump_.session().Up(pump_.now().boot);
  if (!std::exchange(noted_, false)) return;
  client_.OnNote(
      Severity::kInfo, "redis_wake_up_back",
      fmt::format("{}: pub/sub wake-up works again on this node", options_.address.text));
}

void Subscriber::Note() {
  if (std::exchange(noted_, true)) return;
  client_.OnNote(
      Severity::kWarn, "redis_wake_up_away",
      fmt::format("{}: pub/sub wake-up unavailable on this node, falling back to polling: {}",
                  options_.address.text, pump_.session().failure().Text()));
}

}  // namespace fencepost::locking
