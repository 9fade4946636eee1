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
      locks_(locking::SizesOf(nodes.groups), nodes.lock, creation, locking::RandomBits, nullptr) {
  for (int group = 0; group < locks_.size(); ++group) {
    engines_.push_back(std::make_unique<locking::RedisEngine>(
        io_, locks_.core(group), nodes_.groups[static_cast<std::size_t>(group)], nodes_.lock,
        nullptr, [this] { Take(); }));
    engines_.back()->Start();
  }
}

std::optional<Error> StoreView::Problem() const {
  std::optional<Error> first;
  for (int group = 0; group < groups(); ++group) {
    std::optional<Error> problem = store(group).Problem();
    if (!problem) continue;
    if (groups() > 1 && problem->where.empty()) problem->where = nodes_.GroupText(group, "");
    if (problem->code == "foreign_group") return problem;
    if (!first) first = std::move(problem);
  }
  return first;
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

bool StoreView::Connect(int first, int count, Millis limit) {
  const auto all = [&] {
    for (int node = first; node < first + count; ++node) {
      const locking::NodeStatus status = Status(node);
      if (!status.connected || !status.open) return false;
    }
    return true;
  };
  return WatchUntil(all, limit);
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
  for (const auto& engine : engines_) engine->Kick();
  WatchUntil(
      [&] {
        Take();
        return answered_ == names.size();
      },
      limit);
  return std::move(answers_);
}

void StoreView::Take() {
  for (std::vector<locking::LockEvent> events; locks_.TakeEvents(events);) {
    for (const locking::LockEvent& event : events) {
      if (event.kind != locking::LockEvent::Kind::kAnswered || event.cookie == 0) continue;
      if (event.cookie > answers_.size()) continue;
      answers_[event.cookie - 1] = *event.answers;
      ++answered_;
    }
  }
}

}  // namespace fencepost::cli
