#include "consumer/cli/shared/store_view.h"

#include "locking/base/random.h"

namespace fencepost::cli {

using locking::BootClock;
using locking::Millis;

const char* StateOf(const locking::NodeStatus& status) {
  if (!status.connected) return "down";
  if (status.quarantined) return "quarantined";
  if (status.open) return "ok";
  if (!status.problem.empty()) return "refused";
  const bool member = status.sentinel && status.sentinel->complete;
  return member && status.sentinel->run_id != status.run_id ? "restarted" : "no lock store";
}

std::string WhyNoAnswer(const locking::NodeStatus& status) {
  if (!status.problem.empty()) return status.problem;
  if (!status.connected) return "no connection";
  return status.open ? "no answer" : "it is not part of the lock store";
}

StoreView::StoreView(const LockNodes& nodes, locking::StoreCreation creation)
    : nodes_(nodes),
      core_(static_cast<int>(nodes.redis.nodes.size()), nodes.lock, creation, locking::RandomBits,
            nullptr),
      engine_(io_, core_, nodes_.redis, nodes_.lock, nullptr, [this] { Take(); }) {
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

bool StoreView::Connect(Millis limit) {
  const auto takes_part = [](const locking::NodeStatus& node) {
    return node.connected && node.open;
  };
  return WatchUntil([&] { return All(takes_part); }, limit);
}

std::vector<locking::NodeReplies> StoreView::Ask(locking::OpKind kind,
                                                 const std::vector<std::string>& names,
                                                 Millis limit) {
  answered_ = 0;
  locking::NodeReplies none;
  for (locking::Reply& reply : none) reply.code = locking::ReplyCode::kConnection;
  answers_.assign(names.size(), none);
  for (std::size_t i = 0; i < names.size(); ++i) {
    core_.Ask(kind, names[i], i + 1, locking::ReadClocks());
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

void StoreView::Take() {
  for (const locking::LockEvent& event : core_.events()) {
    if (event.kind != locking::LockEvent::Kind::kAnswered || event.cookie == 0) continue;
    if (event.cookie > answers_.size()) continue;
    answers_[event.cookie - 1] = *event.answers;
    ++answered_;
  }
  core_.events().clear();
}

}  // namespace fencepost::cli
