#include "tests/model/core/transcript.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/sentinel_node.h"

namespace fencepost::locking {
namespace {

const char* Text(OpKind kind) {
  switch (kind) {
    case OpKind::kExtend:
      return "extend";
    case OpKind::kAcquire:
      return "acquire";
    case OpKind::kFill:
      return "fill";
    case OpKind::kAbort:
      return "abort";
    case OpKind::kRelease:
      return "release";
    case OpKind::kDone:
      return "done";
    case OpKind::kForget:
      return "forget";
    case OpKind::kInspect:
      return "inspect";
  }
  return "?";
}

std::string Text(const LockEvent& event) {
  static constexpr std::array kReasons = {"contended", "stale",    "refused", "unavailable",
                                          "timeout",   "too-late", "foreign"};
  static constexpr std::array kLosses = {"expired", "stolen", "node-wiped", "clock"};
  static constexpr std::array kOutcomes = {"released", "expired", "stolen", "unknown"};
  const auto reason = kReasons.at(static_cast<std::size_t>(event.reason));
  switch (event.kind) {
    case LockEvent::Kind::kLeased:
      return "leased";
    case LockEvent::Kind::kDone:
      return "done";
    case LockEvent::Kind::kRoundFailed:
      return fmt::format("round-failed:{}", reason);
    case LockEvent::Kind::kGaveUp:
      return fmt::format("gave-up:{}", reason);
    case LockEvent::Kind::kLost:
      return fmt::format("lost:{}", kLosses.at(static_cast<std::size_t>(event.loss)));
    case LockEvent::Kind::kReleased:
      return fmt::format("released:{}", kOutcomes.at(static_cast<std::size_t>(event.outcome)));
    case LockEvent::Kind::kCompleted:
      return event.majority ? "completed" : "completed:no-majority";
    case LockEvent::Kind::kAnswered:
      return "answered";
  }
  return "?";
}

}  // namespace

Transcript::Transcript(int nodes, bool connected, const LockOptions& with, LockObserver* observer,
                       Contact contact, std::size_t few_locks)
    : options([&] {
        LockOptions asked = with;
        asked.contact = contact;
        asked.few_locks = few_locks;
        return asked;
      }()),
      core(
          nodes, options, StoreCreation::kQuarantined,
          [this] { return random += 0x9e3779b97f4a7c15ULL; }, observer),
      nodes_(nodes) {
  for (char node = 'a'; connected && node < 'a' + nodes; ++node) Connect(node);
}

void Transcript::Connect(char node, bool quarantined) {
  const std::string run_id(kRunIdSize, node);
  Sentinel sentinel = CompleteSentinel(run_id, node - 'a', nodes_, options.max_ttl);
  if (quarantined) sentinel.quarantine_until = now.wall + Millis(30'000);
  core.OnConnected(node - 'a', MemberInfo(run_id, sentinel.Encode(), now), now);
  core.OnTime(now);
}

LockId Transcript::Acquire(const std::string& name, Millis wait, bool watchdog) {
  return core.Acquire({.name = name, .cookie = 1, .wait = wait, .watchdog = watchdog}, now);
}

LockId Transcript::AcquireAs(AcquireSpec spec) {
  spec.cookie = 1;
  return core.Acquire(spec, now);
}

std::string Transcript::Watched() {
  std::string text;
  for (const WatchChange& change : core.watch_changes()) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", change.on ? '+' : '-', change.name);
  }
  core.watch_changes().clear();
  return text;
}

std::string Transcript::Send() {
  std::string text;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    auto& at = out[static_cast<std::size_t>(node)];
    std::vector<Op> ops;
    if (!at.empty() || core.TakeBatch(node, ops) == 0) continue;
    if (!text.empty()) text += ' ';
    text += static_cast<char>('a' + node);
    for (const Op& op : ops) {
      text += &op == ops.data() ? ':' : ',';
      text += Text(op.kind);
      at.push_back(op);
    }
  }
  return text;
}

void Transcript::Answer(char node, Reply reply) {
  auto& at = out[static_cast<std::size_t>(node - 'a')];
  ASSERT_FALSE(at.empty()) << "nothing is out at node " << node;
  reply.lock = at.front().lock;
  reply.round = at.front().round;
  reply.kind = at.front().kind;
  at.pop_front();
  core.OnReplies(node - 'a', {reply}, now);
}

void Transcript::AnswerAll(ReplyCode code) {
  for (char node = 'a'; node < 'a' + nodes_; ++node) {
    while (!out[static_cast<std::size_t>(node - 'a')].empty()) Answer(node, code);
  }
}

LockId Transcript::Lease(bool watchdog) {
  const LockId lock = Acquire("x", Millis(0), watchdog);
  Send();
  AnswerAll(ReplyCode::kGranted);
  EXPECT_EQ(Events(), "leased");
  return lock;
}

std::string Transcript::Events() {
  std::string text;
  for (const LockEvent& event : core.events()) {
    if (!text.empty()) text += ' ';
    text += Text(event);
  }
  core.events().clear();
  return text;
}

void Transcript::PassToNext() {
  if (core.NextTime() > now.boot) Pass(std::chrono::ceil<Millis>(core.NextTime() - now.boot));
  core.OnTime(now);
}

}  // namespace fencepost::locking
