#include "tests/model/simulator/link.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using locking::NodeIndex;
using locking::NodeSession;
using locking::Op;
using locking::ReplyCode;
using locking::StoreCommand;

locking::SessionOptions SessionOf(World& world) {
  static const locking::Script script{"any", "return 1", "s"};
  static const std::array<const locking::Script*, 1> scripts = {&script};
  return {.username = "",
          .password = "secret",
          .scripts = scripts,
          .handshake_timeout = std::max<Nanos>(world.plan.handshake, world.plan.lock.node_timeout),
          .seed = world.random.Bits()};
}

// One script call for each run of one kind.
void Cut(Exchange& exchange, const std::vector<Op>& ops) {
  for (const Op& op : ops) {
    if (exchange.calls.empty() || exchange.calls.back().ops.back().kind != op.kind) {
      exchange.calls.emplace_back();
    }
    Op copy = op;
    copy.name = exchange.names.emplace_back(op.name);
    exchange.calls.back().ops.push_back(copy);
  }
}

}  // namespace

Link::Link(World& world, SimWorker& worker, NodeIndex index, SimNode& node)
    : world_(world),
      worker_(worker),
      process_(worker.process()),
      index_(index),
      core_(worker.locks()),
      node_(node),
      session_(SessionOf(world)) {}

locking::NodeStatus Link::Status() const { return core_.store().Status(index_, process_.now()); }

// --- steps of the session ----------------------------------------------------------------------

void Link::Start() {
  Do(session_.Start(Boot()));
  ArmTimer();
}

void Link::Do(NodeSession::Step step) {
  using Step = NodeSession::Step;
  switch (step) {
    case Step::kConnect:
      return Connect();
    case Step::kSend:
      return Send(std::make_shared<Exchange>(Exchange::Kind::kPrepare));
    case Step::kPrepared:
      return Ask(std::make_shared<Exchange>(Exchange::Kind::kProbe));
    case Step::kReply:
      return OnReply();
    case Step::kAnswered:
      return OnAllReplies();
    case Step::kStalled:
      return Stall();
    case Step::kClose:
      return Close();
    case Step::kWait:
    case Step::kCheck:
      return;
  }
}

void Link::Connect() {
  ++connection_;
  node_incarnation_ = node_.incarnation;
  Send(std::make_shared<Exchange>(Exchange::Kind::kConnect));
}

bool Link::IsCurrent(int connection) const {
  return connection == connection_ && session_.stage() != NodeSession::Stage::kDown;
}

void Link::OnOpen(int connection) {
  if (!IsCurrent(connection)) return;
  sent_.clear();
  Do(session_.OnOpen(sent_));
}

void Link::OnBytes(int connection, std::string_view bytes) {
  if (!IsCurrent(connection)) return;
  session_.OnBytes(bytes);
  for (;;) {
    const NodeSession::Step step = session_.Next(Boot());
    if (step == NodeSession::Step::kWait) break;
    Do(step);
  }
  ArmTimer();
}

void Link::OnBroken(int connection, const char* why) {
  if (!IsCurrent(connection)) return;
  Do(session_.OnBroken(why, Boot()));
  ArmTimer();
}

// Its clock has stepped: timers that are armed come too late.
void Link::OnClockStepped() {
  armed_for_ = locking::Instant::max();
  ArmTimer();
}

// As SessionPump does: a timer that is armed for an earlier time is left alone.
void Link::ArmTimer() {
  const locking::Instant deadline = session_.deadline();
  if (armed_for_ <= deadline) return;
  armed_for_ = deadline;
  process_.Later(Process::kTimer, process_.TrueTime(deadline) - world_.time.now(),
                 [this, deadline] {
                   if (armed_for_ != deadline) return;
                   armed_for_ = locking::Instant::max();
                   Do(session_.OnTimer(Boot(), ""));
                   ArmTimer();
                 });
}

// --- sending -----------------------------------------------------------------------------------

void Link::Pump() {
  if (session_.stage() != NodeSession::Stage::kReady) return;
  auto& store = core_.store();
  const bool was_open = std::exchange(open_, store.Open(index_));
  if (was_open && !open_) broke_at_ = world_.time.now();  // its store changes: nothing gets there
  Shared exchange;
  if (auto command = store.TakeCommand(index_)) {
    const bool probe = command->kind == StoreCommand::Kind::kProbe;
    exchange = std::make_shared<Exchange>(probe ? Exchange::Kind::kProbe : Exchange::Kind::kWrite);
    exchange->write = std::move(command->write);
  } else if (store.Open(index_)) {
    exchange = TakeBatch();
  }
  if (exchange == nullptr) return;
  session_.BeginTurn(Boot(), world_.plan.lock.node_timeout);
  Ask(exchange);
  ArmTimer();
}

Link::Shared Link::TakeBatch() {
  ops_.clear();
  if (core_.TakeBatch(index_, ops_) == 0) return nullptr;
  worker_.OnSending(ops_);
  batch_ = std::make_shared<Exchange>(Exchange::Kind::kBatch);
  Cut(*batch_, ops_);
  for (Exchange::Call& call : batch_->calls) {
    if (call.ops.front().kind != locking::OpKind::kAcquire) continue;
    call.suits_plain = plain_.Suits(call.ops, world_.plan.lock, process_.now());
  }
  replies_.clear();
  wiped_ = false;
  called_ = 0;
  return batch_;
}

void Link::Ask(const Shared& exchange) {
  using Late = NodeSession::Late;
  const bool batch = exchange->kind == Exchange::Kind::kBatch;
  session_.Ask(exchange->Replies(), batch ? Late::kDropped : Late::kDelivered);
  exchange->number = ++requests_;
  out_ = exchange;
  next_reply_ = 0;
  Send(exchange);
}

void Link::Send(const Shared& exchange) {
  exchange->process = &process_;
  exchange->incarnation = process_.incarnation();
  exchange->link = this;
  exchange->connection = connection_;
  exchange->node = &node_;
  exchange->node_incarnation = node_incarnation_;
  exchange->sent_at = Boot();
  world_.DrawFate(*exchange);
  if (world_.plan.pauses.count() == 0) return Transmit(world_, exchange, world_.HostDelay());
  // The process may stall between the decision and the sending.
  process_.Later(channel(), world_.HostDelay(), [this, exchange] {
    if (IsCurrent(exchange->connection)) Transmit(world_, exchange);
  });
}

// --- replies -----------------------------------------------------------------------------------

// NodeSession's invariant: a reply that is delivered belongs to the request that was announced
// last, and not to one whose operations were answered already.
void Link::OnReply() {
  const std::size_t at = next_reply_++;
  const auto reply = session_.reply().integer;
  const bool batch = out_->kind == Exchange::Kind::kBatch;
  if (reply != out_->Name(at)) {
    world_.Violate("session", fmt::format("w{} node {}: reply {} is delivered in place of {}",
                                          process_.index, node_.index, reply, out_->Name(at)));
  } else if (batch && batch_ == nullptr) {
    world_.Violate("session", fmt::format("w{} node {}: reply {} is delivered although it is late",
                                          process_.index, node_.index, reply));
  } else if (batch) {
    OnCall(at);
  }
}

void Link::OnAllReplies() {
  if (out_->kind != Exchange::Kind::kBatch) {
    OnInfo();
  } else if (batch_ != nullptr) {  // else late: its operations were answered
    HandBack(ReplyCode::kTimeout);
  }
  if (session_.EndTurn()) {
    core_.OnStalled(index_, false, process_.now());
    worker_.HandedIn();
  }
  worker_.Kick();
}

void Link::OnInfo() {
  const locking::Now now = process_.now();
  locking::NodeInfo& info = out_->info;
  info.call.sent_at = out_->sent_at;
  info.call.received_at = now.boot;
  auto& store = core_.store();
  plain_.OnSentinel(info.sentinel);
  plain_.OnCall(info.call);
  if (out_->kind == Exchange::Kind::kWrite) {
    store.OnSentinel(index_, info.sentinel, info.call, now);
  } else {
    session_.Up(now.boot);
    core_.OnConnected(index_, info, now);
  }
  core_.OnTime(now);
  worker_.HandedIn();
  const bool told = out_->kind == Exchange::Kind::kProbe && info.maxmemory_policy != "noeviction";
  if (!told || !world_.plan.lock.quarantine || !store.Open(index_)) return;
  world_.Violate("evicts", fmt::format("w{} goes on with node {}, which it knows to evict",
                                       process_.index, node_.index));
}

void Link::OnCall(std::size_t at) {
  Exchange::Call& call = batch_->calls[at];
  const locking::Now now = process_.now();
  auto& store = core_.store();
  if (call.answered_by_script) {
    const locking::CallInfo info{batch_->sent_at, now.boot, call.header.node_time};
    plain_.OnCall(info);
    store.OnCall(index_, info, now);
  } else if (!std::exchange(wiped_, true)) {
    plain_.OnSentinel(std::nullopt);
    store.OnNoSentinel(index_, now);
    worker_.HandedIn();
  }
  replies_.insert(replies_.end(), call.replies.begin(), call.replies.end());
  called_ = at + 1;
}

// What was not answered is answered by this.
void Link::HandBack(ReplyCode rest) {
  const auto batch = std::exchange(batch_, nullptr);
  for (std::size_t i = called_; i < batch->calls.size(); ++i) {
    for (const Op& op : batch->calls[i].ops) {
      replies_.push_back({.lock = op.lock, .round = op.round, .kind = op.kind, .code = rest});
    }
  }
  core_.OnReplies(index_, replies_, process_.now());
  worker_.OnAnswered(replies_);
  worker_.HandedIn();
}

// A lock is being given back, or a mark is out.
bool Link::Releasing() const {
  if (batch_ == nullptr) return false;
  return std::ranges::any_of(batch_->calls, [](const Exchange::Call& call) {
    using enum locking::OpKind;
    const locking::OpKind kind = call.ops.front().kind;
    return kind == kRelease || kind == kAbort || kind == kDone;
  });
}

// --- trouble -----------------------------------------------------------------------------------

void Link::Stall() {
  world_.Note("w{} node {} stalls", process_.index, node_.index);
  world_.Count("stalls");
  core_.OnStalled(index_, true, process_.now());
  if (batch_ != nullptr) HandBack(ReplyCode::kTimeout);
  worker_.HandedIn();
}

void Link::Close() {
  const locking::SessionFailure& failure = session_.failure();
  world_.Note("w{} node {} away: {}", process_.index, node_.index, failure.Text());
  world_.Count("closed: " + failure.what);
  // The nodes are good: what is not understood was mangled on this side.
  if (failure.reason == locking::CommandError::kOther) {
    world_.Violate("session",
                   fmt::format("w{} node {}: {}", process_.index, node_.index, failure.Text()));
  }
  broke_at_ = world_.time.now();
  plain_.Forget();
  if (session_.lost()) core_.OnDisconnected(index_, process_.now());
  if (batch_ != nullptr) HandBack(ReplyCode::kConnection);
  worker_.HandedIn();
}

}  // namespace fencepost::simulator
