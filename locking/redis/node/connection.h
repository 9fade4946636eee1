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

#include <cstdint>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>

#include "locking/redis/node/batch.h"
#include "locking/redis/node/node_client.h"
#include "locking/redis/node/plain_acquire.h"
#include "locking/redis/node_unavailable.h"
#include "locking/redis/session/node_error.h"
#include "locking/redis/session/node_probe.h"
#include "locking/redis/session/note_limit.h"
#include "locking/redis/session/session_pump.h"

struct redisReply;

namespace fencepost::locking {

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

 private:
  enum class Request : std::uint8_t { kProbe, kWrite, kBatch };

  using Step = NodeSession::Step;

  Step OnStep(Step step) override;

  void BeginProbe();
  void BeginWrite(const SentinelWrite& write);
  void SendBatch();
  void Sent(Request request, std::size_t answers);

  Step OnAnswer(const redisReply& reply);
  void OnBatchAnswer(const redisReply& reply);
  void OnPlainAnswers();
  void OnBatchError(std::string_view text);
  Step OnWriteAnswer(const redisReply& reply);
  Step OnAllAnswers();
  void FinishProbe();
  Step FinishBatch();
  void HandBack();
  void BecomeIdle();

  void Stall();
  void Close();
  void OnRefusal(std::string_view text, const NodeError& error);

  const ConnectionOptions options_;
  NodeClient& client_;
  SessionPump pump_;
  NodeSession& session_;  // the pump's, as is
  const Now& now_;
  Request request_ = Request::kProbe;
  Instant sent_at_{};
  Batch batch_;
  PlainAcquire plain_;
  Probe probe_;
  bool write_refused_ = false;  // the node lacks the script: the store is asked again after a probe
  bool no_scripts_ = false;     // in this batch
  bool wiped_ = false;          // in this batch: reported once
  bool replica_seen_ = false;   // probe before the next batch

  NodeUnavailable away_;
  NoteLimit<CommandError> refusal_notes_;  // of calls, by the kind of refusal
};

}  // namespace fencepost::locking
