#include "locking/redis/node/connection.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

#include "locking/base/check.h"

namespace fencepost::locking {
namespace {

constexpr Millis kMinBackoff{50};
constexpr Millis kMaxBackoff{2000};
constexpr Millis kMinHandshakeTimeout{1000};
constexpr int kTimeoutsUntilClosed = 10;
constexpr Instant kNever = Instant::max();

struct ReplyFree {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using ReplyPtr = std::unique_ptr<redisReply, ReplyFree>;

std::string_view TextOf(const redisReply& reply) { return {reply.str, reply.len}; }

}  // namespace

std::shared_ptr<NameLookup> NamesOf(asio::io_context& io, const ConnectionOptions& options) {
  return options.names ? options.names : std::make_shared<NameLookup>(io, options.look_up);
}

void Connection::ReaderFree::operator()(redisReader* reader) const { redisReaderFree(reader); }

Connection::Connection(asio::io_context& io, ConnectionOptions options, NodeClient& client)
    : io_(io),
      options_(std::move(options)),
      client_(client),
      jitter_(static_cast<std::minstd_rand::result_type>(options_.seed)),
      alive_(std::make_shared<char>()),
      names_(NamesOf(io, options_)),
      timer_(io),
      deadline_(kNever),
      armed_for_(kNever) {}

Connection::~Connection() {
  if (transport_ != nullptr) transport_->Close(false);
}

// --- making the connection -----------------------------------------------------------------------

void Connection::Start() { Connect(); }

void Connection::Connect() {
  stage_ = Stage::kConnecting;
  now_ = ReadClocks();
  BeginTurn(std::max<Nanos>(kMinHandshakeTimeout, options_.lock.node_timeout));
  if (!options_.problem.empty()) {
    Fail({CommandError::kConnection, options_.problem, ""});
    return;
  }
  reader_.reset(redisReaderCreate());
  reader_->maxbuf = 0;  // its buffer stays, however big a batch's answer was
  transport_ = std::make_shared<Transport>(io_, options_.tls,
                                           static_cast<Transport::Listener&>(*this), names_);
  transport_->Connect(options_.address);
}

void Connection::OnOpen() {
  now_ = ReadClocks();
  Prepare(true);
}

void Connection::OnBroken(std::string_view why) {
  Fail({CommandError::kConnection, std::string(why), ""});
}

// After NOSCRIPT the login stands, but the process behind the connection may be another one, or may
// have lost everything: scripts and NodeInfo are asked anew before anything is sent again.
void Connection::Prepare(bool login) {
  std::string& out = transport_->out();
  login_awaited_ = login && !options_.password.empty();
  if (login_awaited_ && options_.username.empty()) {
    AppendCommand({"AUTH", options_.password}, out);
  } else if (login_awaited_) {
    AppendCommand({"AUTH", options_.username, options_.password}, out);
  }
  const std::size_t scripts = AppendScriptLoads(out);
  Sent(Stage::kPreparing, scripts + (login_awaited_ ? 1 : 0));
}

void Connection::BeginProbe() { Sent(Stage::kProbing, probe_.Begin(transport_->out())); }

void Connection::FinishProbe() {
  NodeInfo& info = probe_.info();
  if (!up_) {
    if (was_up_ever_) client_.OnReconnect();
    up_ = was_up_ever_ = true;
    up_since_ = now_.boot;
    away_.clear();
    if (!noted_away_.empty()) {
      noted_away_.clear();
      client_.OnNote(Severity::kInfo, "redis_node_back",
                     fmt::format("{}: the lock node answers again", options_.address.text));
    }
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
  if (stage_ != Stage::kIdle) return;
  const bool probe = replica_seen_;
  std::optional<StoreCommand> command;
  if (!probe) command = client_.TakeCommand();
  if (!probe && !command && (!client_.Open() || client_.TakeBatch(batch_.ops()) == 0)) return;
  now_ = ReadClocks();
  BeginTurn(options_.lock.node_timeout);
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
  Sent(Stage::kWriting, 1);
}

void Connection::Sent(Stage stage, std::size_t answers) {
  stage_ = stage;
  awaited_ = answers;
  sent_at_ = BootClock::now();
  transport_->Flush();
}

// --- answers -------------------------------------------------------------------------------------

void Connection::OnBytes(std::string_view bytes) {
  now_ = ReadClocks();
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
  while (stage_ != Stage::kDown) {
    void* raw = nullptr;
    if (redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
      Fail({CommandError::kOther, fmt::format("this is not Redis: {}", reader_->errstr),
            "check host and port, and whether the node expects TLS"});
      return;
    }
    if (raw == nullptr) return;
    const ReplyPtr reply(static_cast<redisReply*>(raw));
    if (awaited_ == 0) {  // as a server does that closes the connection: "max number of clients"
      Fail({CommandError::kOther, fmt::format("an answer to nothing: {}", TextOf(*reply)), ""});
      return;
    }
    --awaited_;
    OnAnswer(*reply);
    if (stage_ != Stage::kDown && awaited_ == 0) OnAllAnswers();
  }
}

void Connection::OnAnswer(const redisReply& reply) {
  const bool error = reply.type == REDIS_REPLY_ERROR;
  switch (stage_) {
    case Stage::kPreparing:
      if (error) FailBy(TextOf(reply));
      login_awaited_ = false;
      return;
    case Stage::kProbing:
      if (error) {
        FailBy(TextOf(reply));
      } else if (!probe_.OnAnswer(reply)) {
        Fail({CommandError::kOther, "INFO, TIME or GET was not answered as Redis does", ""});
      } else {
        probe_.info().call.sent_at = sent_at_;
        probe_.info().call.received_at = now_.boot;
      }
      return;
    case Stage::kWriting:
      OnWriteAnswer(reply);
      return;
    case Stage::kBatch:
      if (batch_.Active()) OnBatchAnswer(reply);  // else it comes late: its ops were answered
      return;
    default:
      FENCEPOST_CHECK(false, fmt::format("an answer in stage {}", static_cast<int>(stage_)));
  }
}

void Connection::OnWriteAnswer(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) {
    const NodeError error = ReadNodeError(TextOf(reply));
    if (error.kind == NodeErrorKind::kNoScript) {
      client_.OnCommandError(error.reason);
      write_refused_ = true;
    } else {
      FailBy(TextOf(reply));
    }
    return;
  }
  auto answer = ParseSentinelWrite(reply.type == REDIS_REPLY_STRING ? TextOf(reply) : "");
  if (!answer) {
    Fail({CommandError::kOther, answer.error(), ""});
    return;
  }
  plain_.OnSentinel(answer->current);
  client_.OnSentinel(std::move(answer->current), {sent_at_, now_.boot, answer->node_time}, now_);
}

void Connection::OnAllAnswers() {
  switch (stage_) {
    case Stage::kPreparing:
      BeginProbe();
      return;
    case Stage::kProbing:
      FinishProbe();
      return;
    case Stage::kWriting:
      if (std::exchange(write_refused_, false)) {
        Prepare(false);
      } else {
        BecomeIdle();
      }
      return;
    default:
      FinishBatch();
  }
}

void Connection::BecomeIdle() {
  stage_ = Stage::kIdle;
  deadline_ = kNever;
  if (std::exchange(stalled_, false)) client_.OnStalled(false, now_);
  client_.OnIdle();
}

// --- time and trouble ----------------------------------------------------------------------------

void Connection::BeginTurn(Nanos limit) {
  turn_began_ = now_.boot;
  deadline_ = now_.boot + limit;
  ArmTimer();
}

// Lazily: a timer that is armed for an earlier time is left alone, so that a busy connection
// touches it once a timeout and not once a batch.
void Connection::ArmTimer() {
  if (deadline_ == kNever || armed_for_ <= deadline_) return;
  armed_for_ = deadline_;
  timer_.expires_after(std::max(deadline_ - now_.boot, Nanos(0)));
  timer_.async_wait([this, alive = std::weak_ptr<char>(alive_)](std::error_code error) {
    if (error || alive.expired()) return;
    OnTimer();
  });
}

void Connection::OnTimer() {
  armed_for_ = kNever;
  now_ = ReadClocks();
  if (now_.boot < deadline_) {
    ArmTimer();
  } else if (stage_ == Stage::kDown) {
    Connect();
  } else if (!up_) {
    const std::string_view at = transport_ == nullptr ? "" : transport_->Doing();
    Fail({CommandError::kTimeout,
          fmt::format("no connection and login within the timeout{}{}",
                      at.empty() ? "" : ", at: ", at),
          ""});
  } else if (!stalled_) {
    Stall();
  } else {
    Fail({CommandError::kTimeout, "no answer for ten timeouts", ""});
  }
}

void Connection::Stall() {
  stalled_ = true;
  deadline_ = std::max(turn_began_ + kTimeoutsUntilClosed * Nanos(options_.lock.node_timeout),
                       now_.boot + Nanos(options_.lock.node_timeout));
  ArmTimer();
  const std::size_t calls = std::max<std::size_t>(batch_.CallsUnsettled(), 1);
  for (std::size_t i = 0; i < calls; ++i) client_.OnCommandError(CommandError::kTimeout);
  client_.OnStalled(true, now_);
  if (!batch_.Active()) return;
  batch_.SettleRest(ReplyCode::kTimeout);
  HandBack();
}

void Connection::FailBy(std::string_view error_text) {
  const NodeError error = ReadNodeError(error_text);
  const char* const during = stage_ == Stage::kPreparing && login_awaited_ ? "login: " : "";
  Fail({error.reason, fmt::format("{}the node says: {}", during, error.text), error.hint});
}

void Connection::Fail(const Failure& failure) {
  now_ = ReadClocks();
  if (transport_ != nullptr) transport_->Close(true);
  transport_.reset();
  stage_ = Stage::kDown;
  awaited_ = 0;
  stalled_ = false;
  plain_.Forget();
  client_.OnCommandError(failure.reason);
  away_ = failure.what;
  if (away_.ends_with('.')) away_.pop_back();
  if (!failure.hint.empty()) away_ += "; " + failure.hint;
  NoteAway(failure);
  if (up_ && now_.boot - up_since_ > kMaxBackoff) attempts_ = 0;
  const Millis most = std::min(kMaxBackoff, kMinBackoff * (2 << std::min(attempts_, 10)));
  ++attempts_;
  std::uniform_int_distribution<std::int64_t> wait(kMinBackoff.count(), most.count());
  deadline_ = now_.boot + Millis(wait(jitter_));
  ArmTimer();
  if (std::exchange(up_, false)) client_.OnDisconnected(now_);
  if (batch_.Active()) {
    batch_.SettleRest(ReplyCode::kConnection);
    HandBack();
  }
  client_.OnIdle();
}

}  // namespace fencepost::locking
