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

void StoreView::Take() {
  for (const locking::LockEvent& event : std::exchange(locks_.events(), {})) {
    if (event.kind != locking::LockEvent::Kind::kAnswered || event.cookie == 0) continue;
    if (event.cookie > answers_.size()) continue;
    answers_[event.cookie - 1] = *event.answers;
    ++answered_;
  }
}

}  // namespace fencepost::cli
