// Drives a NodeSession over Asio: makes its transport, feeds it bytes, and keeps its timer. What
// the steps mean is the user's: a connection (node/), the subscriber (wake/), a raw node (tools/).
// All on the thread that runs the io_context. The end of this object ends all calls to the user;
// what was sent is still delivered.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/ssl/context.hpp>
#include <asio/steady_timer.hpp>

#include "locking/base/secret.h"
#include "locking/core/options.h"
#include "locking/redis/address.h"
#include "locking/redis/node_unavailable.h"
#include "locking/redis/session/name_lookup.h"
#include "locking/redis/session/node_session.h"
#include "locking/redis/session/transport.h"

namespace fencepost::locking {

struct ConnectionOptions {
  NodeAddress address;
  std::string username;
  Secret password;                          // read at every connect
  std::shared_ptr<asio::ssl::context> tls;  // null: none
  // Why connecting would be useless (a bad address or TLS file); empty: nothing is wrong.
  std::string problem;
  UnavailableReason problem_code = UnavailableReason::kOther;
  // Shared by all connections to this node; null: a lookup of its own, by `look_up`.
  std::shared_ptr<NameLookup> names;
  LookUp look_up;  // empty: the system's
  LockOptions lock;
  std::uint64_t seed = 0;  // of the jitter

  // Who logs in (its password comes at each connect), the jitter, and how long connecting may take.
  [[nodiscard]] SessionOptions Session() const;
};

class SessionPump final : private Transport::Listener {
 public:
  class User {
   public:
    // Every step but kWait, kConnect and kSend. After kClose there is no transport any more.
    // Returns the next step: what a call of the session returned, or kWait.
    [[nodiscard]] virtual NodeSession::Step OnStep(NodeSession::Step step) = 0;
    // Asked when the pause after a failure is over. False: the session waits for Start.
    [[nodiscard]] virtual bool Wanted() const { return true; }

   protected:
    ~User() = default;
  };

  // `options` and `user` must outlive this.
  SessionPump(asio::io_context& io, const ConnectionOptions& options, SessionOptions session,
              User& user);
  ~SessionPump();
  SessionPump(const SessionPump&) = delete;
  SessionPump& operator=(const SessionPump&) = delete;

  void Start();
  void Stop();  // closes the connection without a failure
  void BeginTurn(Nanos timeout);
  void Listen();

  NodeSession& session() { return session_; }
  [[nodiscard]] const NodeSession& session() const { return session_; }
  // When the last bytes or timer came, or a turn began.
  [[nodiscard]] const Now& now() const { return now_; }
  // Append a request, then Flush; while there is a transport.
  std::string& out() { return transport_->out(); }
  void Flush() { transport_->Flush(); }

 private:
  void OnOpen() override;
  void OnBytes(std::string_view bytes) override;
  void OnBroken(std::string_view why) override;

  void Do(NodeSession::Step step);
  NodeSession::Step Connect();
  void Drop(bool discard);
  void ArmTimer();
  void OnTimer();

  asio::io_context& io_;
  const ConnectionOptions& options_;
  User& user_;
  NodeSession session_;
  const std::shared_ptr<NameLookup> names_;
  std::shared_ptr<Transport> transport_;
  Now now_{};
  asio::steady_timer timer_;
  Instant armed_for_ = Instant::max();  // max(): not armed
  std::shared_ptr<char> alive_;         // handlers look whether it still is
};

}  // namespace fencepost::locking
