#include "locking/redis/wake/subscriber.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

#include "locking/redis/session/handshake.h"
#include "locking/redis/session/node_error.h"

namespace fencepost::locking {
namespace {

constexpr Millis kMinBackoff{50};
constexpr Millis kMaxBackoff{2000};
constexpr Millis kAfterRefusal{60'000};
constexpr Millis kHandshakeTimeout{1000};
// A connection that says nothing is asked, by a SUBSCRIBE that changes nothing, whether it is there
// at all; PING would be one more command to allow.
constexpr Millis kBetweenChecks{5000};
constexpr std::size_t kMostUnwanted = 1000;

struct ReplyFree {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

std::string_view TextOf(const redisReply& reply) { return {reply.str, reply.len}; }

}  // namespace

void Subscriber::ReaderFree::operator()(redisReader* reader) const { redisReaderFree(reader); }

Subscriber::Subscriber(asio::io_context& io, ConnectionOptions options, SubscriberClient& client)
    : io_(io),
      options_(std::move(options)),
      client_(client),
      jitter_(static_cast<std::minstd_rand::result_type>(options_.seed)),
      alive_(std::make_shared<char>()),
      names_(NamesOf(io, options_)),
      timer_(io) {}

Subscriber::~Subscriber() { Close(); }

void Subscriber::Watch(const std::string& name) {
  watched_.insert(name);
  if (stage_ == Stage::kListening) {
    Send("SUBSCRIBE", name);
    transport_->Flush();
  } else if (stage_ == Stage::kDown && !backing_off_) {
    Connect();
  }
}

void Subscriber::Unwatch(const std::string& name) {
  watched_.erase(name);
  if (stage_ != Stage::kListening) return;
  if (may_unsubscribe_) {
    Send("UNSUBSCRIBE", name);
    transport_->Flush();
  } else if (++unwanted_ > kMostUnwanted) {
    Close();
    if (!watched_.empty()) Connect();
  }
}

// --- the connection ------------------------------------------------------------------------------

void Subscriber::Connect() {
  if (!options_.problem.empty()) {
    Fail(kAfterRefusal, options_.problem);
    return;
  }
  stage_ = Stage::kConnecting;
  unwanted_ = 0;
  reader_.reset(redisReaderCreate());
  transport_ = std::make_shared<Transport>(io_, options_.tls,
                                           static_cast<Transport::Listener&>(*this), names_);
  ArmTimer(std::max(kHandshakeTimeout, options_.lock.node_timeout));
  transport_->Connect(options_.address);
}

void Subscriber::OnOpen() {
  if (options_.password.empty()) {
    Listen();
    return;
  }
  stage_ = Stage::kLoggingIn;
  if (options_.username.empty()) {
    AppendCommand({"AUTH", options_.password}, transport_->out());
  } else {
    AppendCommand({"AUTH", options_.username, options_.password}, transport_->out());
  }
  transport_->Flush();
}

void Subscriber::Listen() {
  stage_ = Stage::kListening;
  for (const std::string& name : watched_) Send("SUBSCRIBE", name);
  heard_ = true;
  ArmTimer(kBetweenChecks);
  transport_->Flush();
}

void Subscriber::Send(std::string_view command, std::string_view name) {
  AppendCommand({command, name}, transport_->out());
  ++unconfirmed_;
}

void Subscriber::OnBroken(std::string_view why) { Fail(kMaxBackoff, why); }

// --- answers -------------------------------------------------------------------------------------

void Subscriber::OnBytes(std::string_view bytes) {
  heard_ = true;
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
  while (stage_ != Stage::kDown) {
    void* raw = nullptr;
    if (redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
      Fail(kMaxBackoff, reader_->errstr);
      return;
    }
    if (raw == nullptr) return;
    const std::unique_ptr<redisReply, ReplyFree> reply(static_cast<redisReply*>(raw));
    OnAnswer(*reply);
  }
}

void Subscriber::OnAnswer(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) {
    OnRefusal(TextOf(reply));
  } else if (stage_ == Stage::kLoggingIn) {
    Listen();
  } else {
    OnPush(reply);
  }
}

void Subscriber::OnPush(const redisReply& reply) {
  const bool push = reply.type == REDIS_REPLY_ARRAY && reply.elements == 3 &&
                    reply.element[0]->type == REDIS_REPLY_STRING;
  const std::string_view what = push ? TextOf(*reply.element[0]) : std::string_view();
  if (what == "message" && reply.element[1]->type == REDIS_REPLY_STRING) {
    client_.OnFreed(TextOf(*reply.element[1]));
  } else if ((what == "subscribe" || what == "unsubscribe") && unconfirmed_ > 0) {
    if (--unconfirmed_ > 0) return;
    attempts_ = 0;
    if (std::exchange(noted_, false)) {
      client_.OnNote(
          Severity::kInfo, "redis_wake_up_back",
          fmt::format("{}: the lock node tells again of freed locks", options_.address.text));
    }
  } else {
    Fail(kMaxBackoff, "an answer to nothing");
  }
}

void Subscriber::OnRefusal(std::string_view text) {
  const NodeError error = ReadNodeError(text);
  const bool by_right = error.reason == CommandError::kAuth;
  if (by_right && text.find("'unsubscribe'") != std::string_view::npos && unconfirmed_ > 0) {
    --unconfirmed_;  // it can be done without
    ++unwanted_;
    may_unsubscribe_ = false;
    return;
  }
  Fail(by_right ? kAfterRefusal : kMaxBackoff,
       fmt::format("the node says: {}{}", error.text,
                   by_right ? "; the ACL user needs &fencepost:* and +subscribe" : ""));
}

// --- time and trouble ----------------------------------------------------------------------------

void Subscriber::Fail(Nanos most, std::string_view why) {
  Note(why);
  Close();
  backing_off_ = true;
  const Nanos grown = most > kMaxBackoff ? most : kMinBackoff * (2 << std::min(attempts_, 10));
  ++attempts_;
  const Nanos longest = std::min(grown, most);
  std::uniform_int_distribution<Nanos::rep> wait(longest.count() / 2, longest.count());
  ArmTimer(Nanos(wait(jitter_)));
}

void Subscriber::Close() {
  if (transport_ != nullptr) transport_->Close(false);
  transport_.reset();
  stage_ = Stage::kDown;
  unconfirmed_ = 0;
  ++armed_;
  timer_.cancel();
}

void Subscriber::Note(std::string_view why) {
  if (std::exchange(noted_, true)) return;
  client_.OnNote(Severity::kWarn, "redis_wake_up_away",
                 fmt::format("{}: the lock node does not tell of freed locks, waiters poll it: {}",
                             options_.address.text, why));
}

void Subscriber::ArmTimer(Nanos after) {
  timer_.expires_after(after);
  timer_.async_wait(
      [this, turn = ++armed_, alive = std::weak_ptr<char>(alive_)](std::error_code error) {
        if (!error && !alive.expired() && turn == armed_) OnTimer();
      });
}

void Subscriber::OnTimer() {
  switch (stage_) {
    case Stage::kDown:
      backing_off_ = false;
      if (!watched_.empty()) Connect();
      return;
    case Stage::kConnecting:
    case Stage::kLoggingIn:
      Fail(kMaxBackoff, "no connection and login within the timeout");
      return;
    case Stage::kListening:
      if (watched_.empty()) {
        Close();
      } else if (!std::exchange(heard_, false) && unconfirmed_ > 0) {
        Fail(kMaxBackoff, "no answer");
      } else {
        Send("SUBSCRIBE", *watched_.begin());
        transport_->Flush();
        ArmTimer(kBetweenChecks);
      }
      return;
  }
}

}  // namespace fencepost::locking
