// The second connection to a node: it subscribes to the channels of names that somebody waits for
// (RESP2: SUBSCRIBE, UNSUBSCRIBE), and reports when one is freed. Made with the first name to
// watch, closed a while after the last. While it is unavailable or refused, waiters poll: nothing
// depends on it, so a failure is noted once in the log, until the subscription works again.
//
// Login, liveness checks, deadlines and back-off are NodeSession's (node_session.h), driven by
// SessionPump. All on the thread that runs the io_context.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>

#include "locking/core/observer.h"
#include "locking/redis/session/session_pump.h"

struct redisReply;

namespace fencepost::locking {

// Whom a subscriber reports to. A method must not call back into the subscriber.
class SubscriberClient {
 public:
  virtual void OnFreed(std::string_view name) = 0;  // `name` is good during the call only
  virtual void OnNote(Severity severity, std::string_view event, std::string_view text) = 0;

 protected:
  ~SubscriberClient() = default;
};

class Subscriber final : private SessionPump::User {
 public:
  Subscriber(asio::io_context& io, ConnectionOptions options, SubscriberClient& client);
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  // Once each a name, in turn. The channel is the name itself.
  void Watch(const std::string& name);
  void Unwatch(const std::string& name);
  // The node has confirmed the subscription to every name that is watched.
  [[nodiscard]] bool Listening() const { return Subscribed() && unconfirmed_ == 0; }
  [[nodiscard]] bool Connected() const {
    return pump_.session().stage() != NodeSession::Stage::kDown;
  }

 private:
  using Step = NodeSession::Step;

  Step OnStep(Step step) override;
  [[nodiscard]] bool Wanted() const override { return !watched_.empty(); }

  [[nodiscard]] bool Subscribed() const {
    return pump_.session().stage() == NodeSession::Stage::kListening;
  }
  void Subscribe();
  void Check();
  void Send(std::string_view command, std::string_view name);
  Step OnReply(const redisReply& reply);
  Step OnRefusal(std::string_view text);
  void OnConfirmed();
  void Note();

  const ConnectionOptions options_;
  SubscriberClient& client_;
  std::set<std::string> watched_;
  std::size_t unconfirmed_ = 0;  // SUBSCRIBE and UNSUBSCRIBE that are not answered
  bool may_unsubscribe_ = true;
  std::size_t unwanted_ = 0;  // channels left subscribed, without the right to unsubscribe
  bool noted_ = false;        // that it is unavailable; until it is subscribed again
  SessionPump pump_;          // last: its handlers use the members above
};

}  // namespace fencepost::locking
