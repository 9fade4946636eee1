// The second connection to a node: it listens to the channels of names that somebody waits for
// (RESP2: SUBSCRIBE, UNSUBSCRIBE), and tells when one is freed. Made with the first name to watch,
// closed a while after the last. While it is away or refused, whoever waits polls: nothing depends
// on it, so trouble is noted once in the log and otherwise lived with.
//
//   down ──Watch, or backoff over──▶ connecting ─▶ logging in ─▶ listening ──idle──▶ down
// All on the thread that runs the io_context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "locking/base/types.h"
#include "locking/core/observer.h"
#include "locking/redis/node/connection.h"
#include "locking/redis/session/transport.h"

struct redisReader;
struct redisReply;

namespace fencepost::locking {

// Whom a subscriber tells. A method must not call back into the subscriber.
class SubscriberClient {
 public:
  virtual void OnFreed(std::string_view name) = 0;  // `name` is good during the call only
  virtual void OnNote(Severity severity, std::string_view event, std::string_view text) = 0;

 protected:
  ~SubscriberClient() = default;
};

class Subscriber final : private Transport::Listener {
 public:
  Subscriber(asio::io_context& io, ConnectionOptions options, SubscriberClient& client);
  ~Subscriber();  // closes the connection; nobody is told any more
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  // Once each a name, in turn. The channel is the name itself.
  void Watch(const std::string& name);
  void Unwatch(const std::string& name);
  // The node has confirmed that it tells of every name that is watched.
  [[nodiscard]] bool Listening() const { return stage_ == Stage::kListening && unconfirmed_ == 0; }
  [[nodiscard]] bool Connected() const { return transport_ != nullptr; }

 private:
  enum class Stage : std::uint8_t { kDown, kConnecting, kLoggingIn, kListening };
  struct ReaderFree {
    void operator()(redisReader* reader) const;
  };

  void OnOpen() override;
  void OnBytes(std::string_view bytes) override;
  void OnBroken(std::string_view why) override;

  void Connect();
  void Listen();
  void Send(std::string_view command, std::string_view name);
  void OnAnswer(const redisReply& reply);
  void OnPush(const redisReply& reply);
  void OnRefusal(std::string_view text);
  void Fail(Nanos most, std::string_view why);
  void Close();
  void Note(std::string_view why);
  void ArmTimer(Nanos after);
  void OnTimer();

  asio::io_context& io_;
  const ConnectionOptions options_;
  SubscriberClient& client_;
  std::minstd_rand jitter_;
  std::shared_ptr<char> alive_;  // handlers look whether it still is

  std::shared_ptr<NameLookup> names_;
  std::set<std::string> watched_;
  Stage stage_ = Stage::kDown;
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<redisReader, ReaderFree> reader_;
  std::size_t unconfirmed_ = 0;  // SUBSCRIBE and UNSUBSCRIBE that are not answered
  bool may_unsubscribe_ = true;
  std::size_t unwanted_ = 0;  // channels still subscribed to, for want of that right
  bool heard_ = false;        // anything since the timer was armed
  bool noted_ = false;        // that it is away; until it listens again
  int attempts_ = 0;          // failed in a row
  bool backing_off_ = false;
  asio::steady_timer timer_;
  std::uint64_t armed_ = 0;  // counts, so that an older expiry is known for what it is
};

}  // namespace fencepost::locking
