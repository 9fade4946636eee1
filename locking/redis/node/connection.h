// The connection to one node, which reconnects when it is lost. One request is outstanding at a
// time: a batch, a probe, or a write of the sentinel. All on the thread that runs the io_context.
//
// Handshake, replies, deadlines and back-off belong to NodeSession (node_session.h, with the
// diagram), driven by SessionPump. This class decides what is asked and what the replies mean:
//
// clang-format off
//   prepared ─▶ probe ─▶ idle ─▶ batch, write or probe ─▶ idle
//                 └▶ batch: what failed, again          └▶ NOSCRIPT: prepare, probe
// clang-format on
//
// When a turn is not answered within node_timeout, its operations are answered kTimeout and the
// node is stalled; late replies to a batch are dropped. When ten timeouts have passed since the
// turn began, the connection is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>

#include "locking/core/observer.h"
#include "locking/core/ops.h"
#include "locking/core/store/store.h"
#include "locking/redis/node/batch.h"
#include "locking/redis/node/plain_acquire.h"
#include "locking/redis/node_unavailable.h"
#include "locking/redis/session/node_error.h"
#include "locking/redis/session/node_probe.h"
#include "locking/redis/session/session_pump.h"

struct redisReply;

namespace fencepost::locking {

// The client of a connection: supplies the operations and receives the replies. The engine
// implements it over LockCore; tests script it. All on the thread of the io_context; a method must
// not call back into the connection.
class NodeClient {
 public:
  virtual ~NodeClient() = default;

  // --- what to send ----------------------------------------------------------------------------
  virtual bool Open() = 0;  // may lock operations be sent
  virtual std::size_t TakeBatch(std::vector<Op>& out) = 0;
  virtual std::optional<StoreCommand> TakeCommand() = 0;

  // --- results ---------------------------------------------------------------------------------
  virtual void OnConnected(const NodeInfo& info,
                           Now now) = 0;     // also: probed, scripts loaded again
  virtual void OnReconnect() = 0;            // just before OnConnected
  virtual void OnDisconnected(Now now) = 0;  // ends a stall too
  virtual void OnStalled(bool stalled, Now now) = 0;
  virtual void OnSentinel(std::optional<std::string> current, const CallInfo& call, Now now) = 0;
  virtual void OnNoSentinel(Now now) = 0;
  // An answered script call; comes before the OnReplies that holds its replies.
  virtual void OnCall(OpKind kind, std::size_t keys, const CallInfo& call, Now now) = 0;
  // Exactly one reply for every op taken, over all calls.
  virtual void OnReplies(const std::vector<Reply>& replies, Now now) = 0;
  virtual void OnCommandError(CommandError error) = 0;
  virtual void OnNote(Severity severity, std::string_view event, std::string_view text) = 0;
  virtual void OnIdle() = 0;  // Pump would find the connection ready for the next thing
};

class Connection final : private SessionPump::User {
 public:
  Connection(asio::io_context& io, ConnectionOptions options, NodeClient& client);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start() { pump_.Start(); }
  // Sends the next request if none is outstanding. Cheap when there is nothing to do.
  void Pump();
  // A batch is outstanding and its operations are not answered.
  [[nodiscard]] bool Busy() const { return batch_.Active(); }
  // Why the node is unavailable; kNotYet while it is up, and before the first attempt has failed.
  [[nodiscard]] const NodeUnavailable& Away() const { return away_; }
  // Why it refuses to acquire locks, though it is up; empty: it does not, as far as was seen
  // lately.
  [[nodiscard]] std::string Refuses(Instant now) const {
    return now < refused_at_ + kRefusalCounts ? refusal_ : "";
  }

 private:
  enum class Request : std::uint8_t { kProbe, kWrite, kBatch };
  // Records that wait for a lock ask again sooner.
  static constexpr Nanos kRefusalCounts = std::chrono::seconds(60);

  using Step = NodeSession::Step;

  Step OnStep(Step step) override;

  void BeginProbe();
  void BeginWrite(const SentinelWrite& write);
  void SendBatch();
  void Sent(Request request, std::size_t answers);

  Step OnAnswer(const redisReply& reply);
  Step OnProbeAnswer(const redisReply& reply);
  void OnBatchAnswer(const redisReply& reply);
  void OnPlainAnswers();
  void OnBatchError(std::string_view text);
  Step OnWriteAnswer(const redisReply& reply);
  Step OnAllAnswers();
  Step FinishProbe();
  Step LeaveReplica();
  Step FinishBatch();
  void HandBack(ReplyCode rest);
  void BecomeIdle();

  void Stall();
  void Close();
  void OnRefusal(std::string_view text, const NodeError& error);
  void Answered(OpKind kind, std::size_t keys, const CallInfo& call);

  const ConnectionOptions options_;
  NodeClient& client_;
  SessionPump pump_;
  NodeSession& session_;  // the pump's, as is
  const Now& now_;
  Request request_ = Request::kProbe;
  Instant sent_at_{};
  NodeBatch batch_;
  PlainAcquire plain_;
  Probe probe_;
  bool write_refused_ = false;  // the node lacks the script: the store is asked again after a probe
  bool no_scripts_ = false;     // in this batch
  bool wiped_ = false;          // in this batch: reported once
  std::string not_primary_;     // what the node said of it: probe before the next batch

  NodeUnavailable away_;
  NoteLimit<CommandError> refusal_notes_;  // of calls, by the kind of refusal
  // The last one, until a lock was asked for and the node did not refuse.
  std::string refusal_;
  Instant refused_at_{};
};

}  // namespace fencepost::locking
