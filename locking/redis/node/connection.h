// The connection to one node: made, logged in, kept, lost and made again; one thing out at a time:
// a batch, a probe, or a write of the sentinel. All on the thread that runs the io_context.
//
// Handshake, replies, deadlines and back-off are NodeSession's (node_session.h, with the diagram);
// here is what is asked, and what the answers mean:
//
// clang-format off
//   prepared ─▶ probe ─▶ idle ─▶ batch, write or probe ─▶ idle
//                 └▶ batch: what failed, again          └▶ NOSCRIPT: prepare, probe
// clang-format on
//
// A turn without an answer after node_timeout: its ops are answered kTimeout, the node is stalled;
// late answers to a batch are dropped, until ten timeouts have passed since the turn began; then
// the connection is closed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/ssl/context.hpp>
#include <asio/steady_timer.hpp>

#include "locking/core/options.h"
#include "locking/redis/address.h"
#include "locking/redis/node/batch.h"
#include "locking/redis/node/node_client.h"
#include "locking/redis/node/plain_acquire.h"
#include "locking/redis/session/handshake.h"
#include "locking/redis/session/name_lookup.h"
#include "locking/redis/session/node_error.h"
#include "locking/redis/session/node_session.h"
#include "locking/redis/session/note_limit.h"
#include "locking/redis/session/transport.h"

struct redisReply;

namespace fencepost::locking {

struct ConnectionOptions {
  NodeAddress address;
  std::string username;
  std::string password;
  std::shared_ptr<asio::ssl::context> tls;  // null: none
  // Why it is no use to connect (a bad address or TLS file); empty when there is none.
  std::string problem;
  // Of names, shared by all that connect to this node; null: one of its own, by `look_up`.
  std::shared_ptr<NameLookup> names;
  LookUp look_up;  // empty: the system's
  LockOptions lock;
  std::uint64_t seed = 0;  // of the jitter
};

std::shared_ptr<NameLookup> NamesOf(asio::io_context& io, const ConnectionOptions& options);

class Connection final : private Transport::Listener {
 public:
  Connection(asio::io_context& io, ConnectionOptions options, NodeClient& client);
  ~Connection();  // what was sent is still delivered; nobody is told any more
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start();
  // Sends the next thing if nothing is out. Cheap when there is nothing to do.
  void Pump();
  // A batch is out whose ops are not answered.
  [[nodiscard]] bool Busy() const { return batch_.Active(); }
  // Why the node is away, in one line, with what to do where that is known; empty while it is up,
  // and before the first attempt has failed.
  [[nodiscard]] const std::string& Away() const { return away_; }

 private:
  enum class Request : std::uint8_t { kProbe, kWrite, kBatch };

  void OnOpen() override;
  void OnBytes(std::string_view bytes) override;
  void OnBroken(std::string_view why) override;

  void Do(NodeSession::Step step);
  void Connect();
  void BeginProbe();
  void BeginWrite(const SentinelWrite& write);
  void SendBatch();
  void Sent(Request request, std::size_t answers);

  void OnAnswer(const redisReply& reply);
  void OnBatchAnswer(const redisReply& reply);
  void OnPlainAnswers();
  void OnBatchError(std::string_view text);
  void OnWriteAnswer(const redisReply& reply);
  void OnAllAnswers();
  void FinishProbe();
  void FinishBatch();
  void HandBack();
  void BecomeIdle();

  void OnTimer();
  void ArmTimer();
  void Stall();
  void Close();
  void NoteRefusal(std::string_view text, const NodeError& error);

  asio::io_context& io_;
  const ConnectionOptions options_;
  NodeClient& client_;
  std::shared_ptr<char> alive_;  // handlers look whether it still is

  NodeSession session_;
  std::shared_ptr<NameLookup> names_;
  std::shared_ptr<Transport> transport_;
  Now now_{};  // read when bytes or a timer came
  Request request_ = Request::kProbe;
  Instant sent_at_{};
  Batch batch_;
  PlainAcquire plain_;
  Probe probe_;
  bool write_refused_ = false;  // the node lacks the script: the store is asked again after a probe
  bool no_scripts_ = false;     // in this batch
  bool wiped_ = false;          // in this batch: told once
  bool replica_seen_ = false;   // probe before the next batch

  asio::steady_timer timer_;
  Instant armed_for_;  // max(): not armed

  std::string away_;
  NoteLimit<CommandError> refusal_notes_;  // of calls, by the kind of refusal
};

}  // namespace fencepost::locking
