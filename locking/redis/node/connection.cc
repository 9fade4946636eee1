#include "locking/redis/node/connection.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

#include "locking/redis/wire.h"

namespace fencepost::locking {
namespace {

constexpr Millis kMinHandshakeTimeout{1000};
constexpr Instant kNever = Instant::max();

std::string_view TextOf(const redisReply& reply) { return {reply.str, reply.len}; }

SessionOptions SessionOf(const ConnectionOptions& options) {
  return {.username = options.username,
          .password = options.password,
          .scripts = AllScripts(),
          .handshake_timeout = std::max<Nanos>(kMinHandshakeTimeout, options.lock.node_timeout),
          .request_timeout = options.lock.node_timeout,
          .timeouts_until_closed = 10,
          .seed = options.seed};
}

}  // namespace

std::shared_ptr<NameLookup> NamesOf(asio::io_context& io, const ConnectionOptions& options) {
  return options.names ? options.names : std::make_shared<NameLookup>(io, options.look_up);
}

Connection::Connection(asio::io_context& io, ConnectionOptions options, NodeClient& client)
    : io_(io),
      options_(std::move(options)),
      client_(client),
      alive_(std::make_shared<char>()),
      session_(SessionOf(options_)),
      names_(NamesOf(io, options_)),
      timer_(io),
      armed_for_(kNever) {}

Connection::~Connection() {
  if (transport_ != nullptr) transport_->Close(false);
}

// --- making the connection -----------------------------------------------------------------------

void Connection::Start() {
  now_ = ReadClocks();
  Do(session_.Start(now_.boot));
  ArmTimer();
}

void Connection::Do(NodeSession::Step step) {
  using Step = NodeSession::Step;
  switch (step) {
    case Step::kWait:
      return;
    case Step::kConnect:
      Connect();
      return;
    case Step::kSend:
      transport_->Flush();
      return;
    case Step::kPrepared:
      BeginProbe();
      return;
    case Step::kReply:
      OnAnswer(session_.reply());
      return;
    case Step::kAnswered:
      OnAllAnswers();
      return;
    case Step::kStalled:
      Stall();
      return;
    case Step::kClose:
      Close();
      return;
  }
}

void Connection::Connect() {
  if (!options_.problem.empty()) {
    Do(session_.OnBroken(options_.problem, now_.boot));
    return;
  }
  transport_ = std::make_shared<Transport>(io_, options_.tls,
                                           static_cast<Transport::Listener&>(*this), names_);
  transport_->Connect(options_.address);
}

void Connection::OnOpen() { Do(session_.OnOpen(transport_->out())); }

void Connection::OnBroken(std::string_view why) {
  now_ = ReadClocks();
  Do(session_.OnBroken(why, now_.boot));
  ArmTimer();
}

void Connection::BeginProbe() { Sent(Request::kProbe, probe_.Begin(transport_->out())); }

void Connection::FinishProbe() {
  NodeInfo& info = probe_.info();
  const NodeSession::Back back = session_.Up(now_.boot);
  if (back.reconnect) client_.OnReconnect();
  if (back.newly_up) away_.clear();
  if (back.note) {
    client_.OnNote(Severity::kInfo, "redis_node_back",
                   fmt::format("{}: the lock node answers again", options_.address.text));
  }
  replica_seen_ = false;
  plain_.OnSentinel(info.sentinel);
  client_.OnConnected(info, now_);
  if (batch_.Active() && client_.Open()) {
    SendBatch();
    return;
  }
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
  now_ = ReadClocks();
  session_.BeginTurn(now_.boot);
  ArmTimer();
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
  FormatSentinelWrite(write, transport_->out());
  Sent(Request::kWrite, 1);
}

void Connection::Sent(Request request, std::size_t answers) {
  using Late = NodeSession::Late;
  request_ = request;
  session_.Ask(answers, request == Request::kBatch ? Late::kDropped : Late::kDelivered);
  sent_at_ = BootClock::now();
  transport_->Flush();
}

// --- answers -------------------------------------------------------------------------------------

void Connection::OnBytes(std::string_view bytes) {
  now_ = ReadClocks();
  session_.OnBytes(bytes);
  for (;;) {
    const NodeSession::Step step = session_.Next(now_.boot);
    if (step == NodeSession::Step::kWait) break;
    Do(step);
  }
  ArmTimer();
}

void Connection::OnAnswer(const redisReply& reply) {
  const bool error = reply.type == REDIS_REPLY_ERROR;
  switch (request_) {
    case Request::kProbe:
      if (error) {
        Do(session_.FailBy(TextOf(reply), now_.boot));
      } else if (!probe_.OnAnswer(reply)) {
        Do(session_.Fail(
            {CommandError::kOther, "INFO, TIME or GET was not answered as Redis does", ""},
            now_.boot));
      } else {
        probe_.info().call.sent_at = sent_at_;
        probe_.info().call.received_at = now_.boot;
      }
      return;
    case Request::kWrite:
      OnWriteAnswer(reply);
      return;
    case Request::kBatch:
      OnBatchAnswer(reply);
      return;
  }
}

void Connection::OnWriteAnswer(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) {
    const NodeError error = ReadNodeError(TextOf(reply));
    if (error.kind == NodeErrorKind::kNoScript) {
      client_.OnCommandError(error.reason);
      write_refused_ = true;
    } else {
      Do(session_.FailBy(TextOf(reply), now_.boot));
    }
    return;
  }
  auto answer = ParseSentinelWrite(reply.type == REDIS_REPLY_STRING ? TextOf(reply) : "");
  if (!answer) {
    Do(session_.Fail({CommandError::kOther, answer.error(), ""}, now_.boot));
    return;
  }
  plain_.OnSentinel(answer->current);
  client_.OnSentinel(std::move(answer->current), {sent_at_, now_.boot, answer->node_time}, now_);
}

void Connection::OnAllAnswers() {
  switch (request_) {
    case Request::kProbe:
      FinishProbe();
      return;
    case Request::kWrite:
      if (std::exchange(write_refused_, false)) {
        Do(session_.Prepare(transport_->out()));
      } else {
        BecomeIdle();
      }
      return;
    case Request::kBatch:
      FinishBatch();
      return;
  }
}

void Connection::BecomeIdle() {
  if (session_.EndTurn()) client_.OnStalled(false, now_);
  client_.OnIdle();
}

// --- time and trouble ----------------------------------------------------------------------------

// Lazily: a timer that is armed for an earlier time is left alone, so that a busy connection
// touches it once a timeout and not once a batch.
void Connection::ArmTimer() {
  const Instant deadline = session_.deadline();
  if (deadline == kNever || armed_for_ <= deadline) return;
  armed_for_ = deadline;
  timer_.expires_after(std::max(deadline - now_.boot, Nanos(0)));
  timer_.async_wait([this, alive = std::weak_ptr<char>(alive_)](std::error_code error) {
    if (error || alive.expired()) return;
    OnTimer();
  });
}

void Connection::OnTimer() {
  armed_for_ = kNever;
  now_ = ReadClocks();
  Do(session_.OnTimer(now_.boot, transport_ == nullptr ? "" : transport_->Doing()));
  ArmTimer();
}

void Connection::Stall() {
  const std::size_t calls = std::max<std::size_t>(batch_.CallsUnsettled(), 1);
  for (std::size_t i = 0; i < calls; ++i) client_.OnCommandError(CommandError::kTimeout);
  client_.OnStalled(true, now_);
  if (!batch_.Active()) return;
  batch_.SettleRest(ReplyCode::kTimeout);
  HandBack();
}

void Connection::Close() {
  if (transport_ != nullptr) transport_->Close(true);
  transport_.reset();
  plain_.Forget();
  const SessionFailure& failure = session_.failure();
  client_.OnCommandError(failure.reason);
  if (session_.note_failure()) {
    client_.OnNote(
        Severity::kWarn, "redis_node_away",
        fmt::format("{}: the lock node is away: {}", options_.address.text, failure.Text()));
  }
  away_ = failure.what;
  if (away_.ends_with('.')) away_.pop_back();
  if (!failure.hint.empty()) away_ += "; " + failure.hint;
  if (session_.lost()) client_.OnDisconnected(now_);
  if (batch_.Active()) {
    batch_.SettleRest(ReplyCode::kConnection);
    HandBack();
  }
  client_.OnIdle();
}

}  // namespace fencepost::locking
