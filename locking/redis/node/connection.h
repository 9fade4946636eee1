// The connection to one node: made, logged in, kept, lost and made again; one thing out at a time:
// a batch, a probe, or a write of the sentinel. All on the thread that runs the io_context.
//
//   down ──backoff──▶ connecting ─▶ preparing (AUTH, SCRIPT LOAD) ─▶ probing ─▶ idle ─▶ batch ─▶
//   idle
//                                       ▲                            │  ▲  └──▶ writing ──▶ idle
//                                       └──────── NOSCRIPT ──────────┼──┴────────┘
//                                                                    └▶ batch: what failed, again
// Anything that breaks leads to down. A batch or command without an answer after node_timeout: its
// ops are answered kTimeout, the node is stalled; the late answers are waited for, and thrown away,
// until ten timeouts have passed since it was sent; then down.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
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
#include "locking/redis/session/transport.h"

struct redisReader;
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
  enum class Stage : std::uint8_t {
    kDown,
    kConnecting,
    kPreparing,
    kProbing,
    kIdle,
    kBatch,
    kWriting
  };
  struct Failure {
    CommandError reason = CommandError::kConnection;
    std::string what;
    std::string hint;
  };
  struct ReaderFree {
    void operator()(redisReader* reader) const;
  };

  void OnOpen() override;
  void OnBytes(std::string_view bytes) override;
  void OnBroken(std::string_view why) override;

  void Connect();
  void Prepare(bool login);
  void BeginProbe();
  void BeginWrite(const SentinelWrite& write);
  void SendBatch();
  void Sent(Stage stage, std::size_t answers);
  void BeginTurn(Nanos limit);

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
  void Fail(const Failure& failure);
  void FailBy(std::string_view error_text);
  void NoteAway(const Failure& failure);
  void NoteRefusal(std::string_view text, const NodeError& error);

  asio::io_context& io_;
  const ConnectionOptions options_;
  NodeClient& client_;
  std::minstd_rand jitter_;
  std::shared_ptr<char> alive_;  // handlers look whether it still is

  Stage stage_ = Stage::kDown;
  std::shared_ptr<NameLookup> names_;
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<redisReader, ReaderFree> reader_;
  Now now_{};                // read when bytes or a timer came
  std::size_t awaited_ = 0;  // answers still to come
  Instant sent_at_{};
  Batch batch_;
  PlainAcquire plain_;
  Probe probe_;
  bool login_awaited_ = false;
  bool write_refused_ = false;  // the node lacks the script: the store is asked again after a probe
  bool no_scripts_ = false;     // in this batch
  bool wiped_ = false;          // in this batch: told once
  bool replica_seen_ = false;   // probe before the next batch

  bool up_ = false;  // the client was told OnConnected
  bool was_up_ever_ = false;
  Instant up_since_{};
  bool stalled_ = false;
  int attempts_ = 0;  // failed in a row

  asio::steady_timer timer_;
  Instant turn_began_{};
  Instant deadline_;   // of this stage; in kDown: when to connect
  Instant armed_for_;  // max(): not armed

  std::string away_;
  std::string noted_away_;  // the last reason told; empty when told that it is back
  Instant noted_at_{};
  CommandError noted_refusal_ = CommandError::kTimeout;
  Instant refusal_noted_at_{};
};

}  // namespace fencepost::locking
