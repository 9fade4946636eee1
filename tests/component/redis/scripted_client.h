// A NodeClient that a test scripts: it hands out what the test queued, and remembers what it was
// told.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <asio/io_context.hpp>

#include "locking/redis/node/connection.h"
#include "tests/component/redis/run_until.h"
#include "tests/support/servers.h"

namespace fencepost::locking {

inline std::string NameOf(std::uint32_t lock) { return fmt::format("fencepost:{{test}}:{}", lock); }

// A complete sentinel, out of quarantine, as it stands at a node (locking/core/store/sentinel.h).
inline std::string SentinelText(int index = 0, int nodes = 1) {
  return fmt::format("C|{:032x}|{}|{}|{:08}|{:040}|{:013}|{:08}", 7, index, nodes, 1, 0, 0, 30'000);
}

class ScriptedClient final : public NodeClient {
 public:
  // --- the script ------------------------------------------------------------------------------
  bool open = true;
  std::deque<StoreCommand> commands;

  void Queue(OpKind kind, std::uint32_t lock) {
    names_.push_back(NameOf(lock));
    Op op{.kind = kind, .lock = {lock, 1}, .round = 3, .name = names_.back()};
    op.token = Token(Token::AtWall(ReadClocks().wall).value() + lock);
    op.nonce = Nonce{{lock, 99}};
    op.ttl = Millis(10'000);
    op.crc = lock;
    queued_.push_back(op);
    last_ = op;
  }
  // The last op once more, with its token and nonce.
  void QueueAgain() { queued_.push_back(last_); }

  // --- what was told ---------------------------------------------------------------------------
  std::vector<Reply> replies;
  std::vector<NodeInfo> infos;
  std::vector<std::optional<std::string>> sentinels;
  std::vector<CommandError> errors;
  std::vector<std::string> notes;
  std::vector<OpKind> calls;
  WallTime node_time{};  // of the last one
  std::size_t batches = 0;
  int reconnects = 0;
  int disconnects = 0;
  int no_sentinels = 0;
  bool stalled = false;
  int stalls = 0;
  bool idle = false;  // the test's loop pumps

  [[nodiscard]] std::optional<ReplyCode> CodeOf(std::uint32_t lock, OpKind kind) const {
    for (const Reply& reply : replies) {
      if (reply.lock.slot == lock && reply.kind == kind) return reply.code;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::ptrdiff_t Count(CommandError error) const {
    return std::count(errors.begin(), errors.end(), error);
  }
  [[nodiscard]] bool Noted(std::string_view part) const {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(part) != std::string::npos;
    });
  }

  // --- NodeClient ------------------------------------------------------------------------------
  bool Open() override { return open && connected_; }
  std::size_t TakeBatch(std::vector<Op>& out) override {
    if (stalled) return 0;
    out = queued_;
    queued_.clear();
    return out.size();
  }
  std::optional<StoreCommand> TakeCommand() override {
    if (commands.empty()) return std::nullopt;
    StoreCommand command = commands.front();
    commands.pop_front();
    return command;
  }
  void OnConnected(const NodeInfo& info, Now) override {
    connected_ = true;
    infos.push_back(info);
  }
  void OnReconnect() override { ++reconnects; }
  void OnDisconnected(Now) override {
    connected_ = false;
    stalled = false;
    ++disconnects;
  }
  void OnStalled(bool is, Now) override {
    stalled = is;
    stalls += is ? 1 : 0;
  }
  void OnSentinel(std::optional<std::string> current, const CallInfo&, Now) override {
    sentinels.push_back(std::move(current));
  }
  void OnNoSentinel(Now) override { ++no_sentinels; }
  void OnCall(OpKind kind, std::size_t, const CallInfo& call, Now) override {
    EXPECT_LE(call.sent_at, call.received_at);
    node_time = call.node_time;
    calls.push_back(kind);
  }
  void OnReplies(const std::vector<Reply>& all, Now) override {
    ++batches;
    replies.insert(replies.end(), all.begin(), all.end());
  }
  void OnCommandError(CommandError error) override { errors.push_back(error); }
  void OnNote(Severity, std::string_view event, std::string_view text) override {
    notes.push_back(fmt::format("{}: {}", event, text));
  }
  void OnIdle() override { idle = true; }

 private:
  bool connected_ = false;
  std::deque<std::string> names_;
  std::vector<Op> queued_;
  Op last_{};
};

// A connection to one server, and the loop that drives it.
class ConnectionHarness {
 public:
  explicit ConnectionHarness(const std::string& address) { options.address = Parse(address); }

  static NodeAddress Parse(const std::string& address) { return ParseNodeAddress(address).value(); }

  void Start() {
    connection.emplace(io, options, client);
    connection->Start();
  }
  // Sends what was queued, and runs until the condition holds.
  ::testing::AssertionResult RunUntil(const std::function<bool()>& condition, std::string_view what,
                                      std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    client.idle = true;
    const auto pump = [&] {
      if (condition()) return true;
      if (std::exchange(client.idle, false)) connection->Pump();
      return false;
    };
    return locking::RunUntil(io, client.notes, what, pump, limit);
  }
  ::testing::AssertionResult RunUntilConnected() {
    const std::size_t before = client.infos.size();
    return RunUntil([&] { return client.infos.size() > before; }, "the handshake");
  }
  ::testing::AssertionResult RunUntilReplies(std::size_t count) {
    return RunUntil([&] { return client.replies.size() >= count; },
                    fmt::format("{} replies", count));
  }

  asio::io_context io;
  ConnectionOptions options;
  ScriptedClient client;
  std::optional<Connection> connection;
};

}  // namespace fencepost::locking
