#include "locking/redis/session/session_pump.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace fencepost::locking {
namespace {

constexpr Millis kMinHandshakeTimeout{1000};

}  // namespace

SessionOptions ConnectionOptions::Session() const {
  return {.username = username,
          .password = {},
          .scripts = {},
          .handshake_timeout = std::max(kMinHandshakeTimeout, lock.node_timeout),
          .seed = seed};
}

SessionPump::SessionPump(asio::io_context& io, const ConnectionOptions& options,
                         SessionOptions session, User& user)
    : io_(io),
      options_(options),
      user_(user),
      session_(std::move(session)),
      names_(options.names ? options.names : std::make_shared<NameLookup>(io, options.look_up)),
      timer_(io),
      alive_(std::make_shared<char>()) {}

SessionPump::~SessionPump() { Drop(false); }

void SessionPump::Start() {
  now_ = ReadClocks();
  Do(session_.Start(now_.boot));
  ArmTimer();
}

void SessionPump::Stop() {
  session_.Stop();
  Drop(false);
}

void SessionPump::BeginTurn(Nanos timeout) {
  now_ = ReadClocks();
  session_.BeginTurn(now_.boot, timeout);
  ArmTimer();
}

void SessionPump::Listen() {
  session_.Listen(now_.boot);
  ArmTimer();
}

// Carries out a step, and those that follow from it at once.
void SessionPump::Do(NodeSession::Step step) {
  using Step = NodeSession::Step;
  while (step != Step::kWait) {
    if (step == Step::kConnect) {
      step = Connect();
    } else if (step == Step::kSend) {
      transport_->Flush();
      step = Step::kWait;
    } else {
      if (step == Step::kClose) Drop(true);
      step = user_.OnStep(step);
    }
  }
}

NodeSession::Step SessionPump::Connect() {
  if (!options_.problem.empty()) {
    return session_.OnBroken(options_.problem, now_.boot, options_.problem_code);
  }
  auto password = options_.password.Read();
  if (!password) {
    return session_.OnBroken("lock.redis.password: " + password.error(), now_.boot,
                             UnavailableReason::kLogin);
  }
  session_.SetPassword(*std::move(password));
  transport_ = std::make_shared<Transport>(io_, options_.tls,
                                           static_cast<Transport::Listener&>(*this), names_);
  transport_->Connect(options_.address);
  return NodeSession::Step::kWait;
}

void SessionPump::Drop(bool discard) {
  if (transport_ != nullptr) transport_->Close(discard);
  transport_.reset();
}

void SessionPump::OnOpen() {
  now_ = ReadClocks();
  Do(session_.OnOpen(transport_->out()));
}

void SessionPump::OnBytes(std::string_view bytes) {
  now_ = ReadClocks();
  session_.OnBytes(bytes);
  for (;;) {
    const NodeSession::Step step = session_.Next(now_.boot);
    if (step == NodeSession::Step::kWait) break;
    Do(step);
  }
  ArmTimer();
}

void SessionPump::OnBroken(std::string_view why) {
  now_ = ReadClocks();
  Do(session_.OnBroken(why, now_.boot, transport_->away()));
  ArmTimer();
}

// Lazily: a timer that is armed for an earlier time is left alone, so that a busy connection
// touches it once a timeout and not once a batch.
void SessionPump::ArmTimer() {
  const Instant deadline = session_.deadline();
  if (armed_for_ <= deadline) return;
  armed_for_ = deadline;
  timer_.expires_after(std::max(deadline - now_.boot, Nanos(0)));
  timer_.async_wait([this, alive = std::weak_ptr<char>(alive_)](std::error_code error) {
    if (error || alive.expired()) return;
    OnTimer();
  });
}

void SessionPump::OnTimer() {
  armed_for_ = Instant::max();
  now_ = ReadClocks();
  const bool pause_is_over =
      session_.stage() == NodeSession::Stage::kDown && now_.boot >= session_.deadline();
  if (pause_is_over && !user_.Wanted()) {
    session_.Stop();
  } else if (transport_ == nullptr) {
    Do(session_.OnTimer(now_.boot, ""));
  } else {
    Do(session_.OnTimer(now_.boot, transport_->Doing(), transport_->away()));
  }
  ArmTimer();
}

}  // namespace fencepost::locking
