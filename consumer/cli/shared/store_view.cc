#include "consumer/cli/shared/store_view.h"

#include <fmt/format.h>

#include "consumer/cli/shared/moments.h"
#include "locking/base/random.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {

using locking::BootClock;
using locking::Millis;
using locking::ReplyCode;

namespace {

NodeFacts NodeFactsOf(const locking::Reply& reply, const std::string& why) {
  NodeFacts node;
  node.token = reply.token;
  node.crc = reply.crc;
  node.rest = reply.rest;
  node.quarantined = reply.quarantined;
  switch (reply.code) {
    case ReplyCode::kContended:
      node.state = NodeState::kHeld;
      break;
    case ReplyCode::kDone:
      node.state = NodeState::kDone;
      break;
    case ReplyCode::kStale:
      node.state = NodeState::kFree;
      break;
    case ReplyCode::kExpired:
      node.state = NodeState::kNothing;
      break;
    case ReplyCode::kNoSentinel:
      node.problem = "it remembers no lock store: wiped, or never initialised";
      break;
    case ReplyCode::kForeign:
      node.problem = "the key holds something that is no lock";
      break;
    default:
      node.problem = why;
  }
  return node;
}

}  // namespace

const char* StateOf(const locking::NodeStatus& status) {
  if (!status.connected) return "down";
  if (status.quarantined) return "quarantined";
  if (status.open) return "ok";
  if (!status.problem.empty()) return "refused";
  const bool member = status.sentinel && status.sentinel->complete;
  return member && status.sentinel->run_id != status.run_id ? "restarted" : "no lock store";
}

std::string NodeText(const NodeFacts& node, std::string_view note) {
  const std::string token =
      fmt::format("token {} (drawn {})", node.token.value(), MomentText(node.token.wall()));
  const std::string rest = SpanText(node.rest);
  std::string text;
  switch (node.state) {
    case NodeState::kUnreachable:
      text = "not reachable: " + node.problem;
      break;
    case NodeState::kHeld:
      text = fmt::format("held under {}, {}", token,
                         node.rest > Millis(0) ? "for another " + rest : "past its deadline");
      break;
    case NodeState::kDone:
      text = fmt::format("DONE under {}, checksum {:016x}, remembered for another {}", token,
                         node.crc, rest);
      break;
    case NodeState::kFree:
      text = fmt::format("free; it was held before, under {} at the latest", token);
      break;
    case NodeState::kNothing:
      text = "nothing";
      break;
  }
  return text.append(note).append(node.quarantined ? " (in quarantine)" : "");
}

StoreView::StoreView(const LockNodes& nodes, locking::StoreCreation creation)
    : redis_(nodes.redis),
      locks_(static_cast<int>(redis_.nodes.size()), nodes.lock, creation, locking::RandomBits,
             nullptr),
      engine_(io_, locks_, redis_, nodes.lock, nullptr, [this] { Take(); }) {
  engine_.Start();
}

bool StoreView::WatchUntil(const std::function<bool()>& enough, Millis limit) {
  const auto end = BootClock::now() + limit;
  while (!enough()) {
    if (BootClock::now() >= end) return false;
    io_.run_for(Millis(10));
    io_.restart();
  }
  return true;
}

std::string StoreView::WhyNoAnswer(int node) const {
  const locking::NodeStatus status = Status(node);
  if (!status.problem.empty()) return status.problem;
  if (status.connected) return status.open ? "no answer" : "it is not part of the lock store";
  const std::string& away = engine_.Away(node).detail;
  return away.empty() ? "no connection" : away;
}

std::vector<locking::NodeReplies> StoreView::Ask(locking::OpKind kind,
                                                 const std::vector<std::string>& names,
                                                 Millis limit) {
  answered_ = 0;
  locking::NodeReplies none;
  for (locking::Reply& reply : none) reply.code = locking::ReplyCode::kConnection;
  answers_.assign(names.size(), none);
  for (std::size_t i = 0; i < names.size(); ++i) {
    locks_.Ask(kind, names[i], i + 1, locking::ReadClocks());
  }
  engine_.Kick();
  WatchUntil(
      [&] {
        Take();
        return answered_ == names.size();
      },
      limit);
  return std::move(answers_);
}

std::vector<std::vector<NodeFacts>> StoreView::Look(const std::vector<std::string>& names,
                                                    Millis limit) {
  std::vector<std::vector<NodeFacts>> all;
  for (const locking::NodeReplies& answers : Ask(locking::OpKind::kInspect, names, limit)) {
    std::vector<NodeFacts>& nodes = all.emplace_back();
    for (int i = 0; i < size(); ++i) {
      nodes.push_back(NodeFactsOf(answers[static_cast<std::size_t>(i)], WhyNoAnswer(i)));
      nodes.back().letter = locking::NodeLetter(i);
      nodes.back().address = Address(i);
    }
  }
  return all;
}

void StoreView::Take() {
  for (const locking::LockEvent& event : std::exchange(locks_.events(), {})) {
    if (event.kind != locking::LockEvent::Kind::kAnswered || event.cookie == 0) continue;
    if (event.cookie > answers_.size()) continue;
    answers_[event.cookie - 1] = *event.answers;
    ++answered_;
  }
}

}  // namespace fencepost::cli
