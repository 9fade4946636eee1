#include "tests/model/simulator/link.h"

#include <algorithm>
#include <utility>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using locking::NodeIndex;
using locking::Op;
using locking::ReplyCode;
using locking::StoreCommand;

constexpr Millis kHandshakeTimeout{1000};
constexpr int kTimeoutsUntilClosed = 10;
constexpr Millis kMinBackoff{50};
constexpr Millis kMaxBackoff{2000};

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
    : world_(world), worker_(worker), process_(worker.process()), index_(index), node_(node) {}

// --- sending -----------------------------------------------------------------------------------

void Link::Connect() {
  stage_ = Stage::kHello;
  ++connection_;
  node_incarnation_ = node_.incarnation;
  auto hello = std::make_shared<Exchange>();
  hello->kind = Exchange::Kind::kHello;
  Send(hello, std::max<Nanos>(kHandshakeTimeout, world_.plan.lock.node_timeout));
}

void Link::Pump() {
  if (stage_ != Stage::kIdle) return;
  auto& store = worker_.locks().store();
  if (auto command = store.TakeCommand(index_)) {
    auto exchange = std::make_shared<Exchange>();
    const bool probe = command->kind == StoreCommand::Kind::kProbe;
    exchange->kind = probe ? Exchange::Kind::kProbe : Exchange::Kind::kWrite;
    exchange->write = std::move(command->write);
    stage_ = Stage::kOut;
    Send(exchange, world_.plan.lock.node_timeout);
  } else if (store.Open(index_)) {
    SendBatch();
  }
}

void Link::SendBatch() {
  ops_.clear();
  if (worker_.locks().TakeBatch(index_, ops_) == 0) return;
  worker_.OnSending(ops_);
  auto exchange = std::make_shared<Exchange>();
  exchange->kind = Exchange::Kind::kBatch;
  Cut(*exchange, ops_);
  replies_.clear();
  wiped_ = false;
  called_ = 0;
  stage_ = Stage::kOut;
  batch_ = exchange;
  Send(exchange, world_.plan.lock.node_timeout);
}

void Link::Send(const std::shared_ptr<Exchange>& exchange, Nanos limit) {
  exchange->process = &process_;
  exchange->incarnation = process_.incarnation();
  exchange->link = this;
  exchange->connection = connection_;
  exchange->node = &node_;
  exchange->node_incarnation = node_incarnation_;
  exchange->sent_at = process_.now().boot;
  world_.DrawFate(*exchange);
  ArmTimeout(limit);
  // The process may stand still between the decision and the sending.
  process_.Later(channel(), world_.HostDelay(), [this, exchange] {
    if (exchange->connection == connection_ && stage_ != Stage::kDown) Transmit(world_, exchange);
  });
}

// --- answers -----------------------------------------------------------------------------------

void Link::OnAnswer(const std::shared_ptr<Exchange>& exchange, std::size_t call) {
  if (exchange->connection != connection_ || stage_ == Stage::kDown) return;
  if (exchange->kind != Exchange::Kind::kBatch) {
    OnInfo(*exchange);
    BecomeIdle();
    return;
  }
  if (batch_ == exchange) OnCall(*exchange, call);  // else it comes late: its ops were answered
  if (call + 1 < exchange->calls.size()) return;
  if (batch_ == exchange) HandBack(ReplyCode::kTimeout);
  BecomeIdle();
}

void Link::OnInfo(Exchange& exchange) {
  const locking::Now now = process_.now();
  exchange.info.call.sent_at = exchange.sent_at;
  exchange.info.call.received_at = now.boot;
  auto& store = worker_.locks().store();
  if (exchange.kind == Exchange::Kind::kWrite) {
    store.OnSentinel(index_, exchange.info.sentinel, exchange.info.call, now);
  } else {
    up_ = true;
    store.OnConnected(index_, exchange.info, now);
  }
  worker_.locks().OnTime(now);
  worker_.HandedIn();
}

void Link::OnCall(Exchange& exchange, std::size_t at) {
  Exchange::Call& call = exchange.calls[at];
  const locking::Now now = process_.now();
  auto& store = worker_.locks().store();
  if (call.answered_by_script) {
    store.OnCall(index_, {exchange.sent_at, now.boot, call.header.node_time}, now);
  } else if (!std::exchange(wiped_, true)) {
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
  worker_.locks().OnReplies(index_, replies_, process_.now());
  worker_.OnAnswered(replies_);
  worker_.HandedIn();
}

void Link::BecomeIdle() {
  stage_ = Stage::kIdle;
  ++turn_;
  if (std::exchange(stalled_, false)) {
    worker_.locks().OnStalled(index_, false, process_.now());
    worker_.HandedIn();
  }
  worker_.Kick();
}

// --- time and trouble --------------------------------------------------------------------------

void Link::ArmTimeout(Nanos after) {
  process_.Later(Process::kTimer, after, [this, turn = ++turn_] { OnTimeout(turn); });
}

void Link::OnTimeout(int turn) {
  if (turn != turn_) return;
  if (stage_ == Stage::kDown) return Connect();
  if (!up_) return Fail("no connection within the timeout");
  if (stalled_) return Fail("no answer for ten timeouts");
  stalled_ = true;
  world_.Note("w{} node {} stalls", process_.index, node_.index);
  ArmTimeout((kTimeoutsUntilClosed - 1) * Nanos(world_.plan.lock.node_timeout));
  worker_.locks().OnStalled(index_, true, process_.now());
  if (batch_ != nullptr) HandBack(ReplyCode::kTimeout);
  worker_.HandedIn();
}

void Link::OnBroken(int connection) {
  if (connection == connection_ && stage_ != Stage::kDown) Fail("broken");
}

void Link::Fail(const char* why) {
  world_.Note("w{} node {} away: {}", process_.index, node_.index, why);
  stage_ = Stage::kDown;
  stalled_ = false;
  broke_at_ = world_.time.now();
  const Nanos most = std::min<Nanos>(kMaxBackoff, kMinBackoff * (2 << std::min(attempts_, 5)));
  attempts_ = up_ ? 0 : attempts_ + 1;
  ArmTimeout(world_.random.Time(kMinBackoff, most));
  if (std::exchange(up_, false)) worker_.locks().OnDisconnected(index_, process_.now());
  if (batch_ != nullptr) HandBack(ReplyCode::kConnection);
  worker_.HandedIn();
}

}  // namespace fencepost::simulator
