// One node for a command that works on the store: asked and waited for, one connection, which is
// not made again once it failed. Not for clients of the lock (connection.h). One thread, which must
// be the one that runs the io_context, and runs it only through these calls.
//
// A call fails with what the node answered, or with why it is unavailable: not connected, no answer
// within the call's limit, a reply that is not Redis's. Once unavailable, every call fails with the
// same error. One call is outstanding at a time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>
#include <tl/expected.hpp>

#include "locking/base/error.h"
#include "locking/base/types.h"
#include "locking/core/store/heal.h"
#include "locking/redis/options.h"
#include "locking/redis/session/node_probe.h"
#include "locking/redis/session/session_pump.h"

namespace fencepost::locking {

class RawNode final : private SessionPump::User {
 public:
  RawNode(asio::io_context& io, const RedisOptions& redis, std::size_t index);
  RawNode(const RawNode&) = delete;
  RawNode& operator=(const RawNode&) = delete;

  // Connects, logs in, loads the scripts. Errors: why the node is unavailable.
  tl::expected<void, Error> Connect(Millis limit);
  // INFO's fields by name: of the sections that describe a node's state, or of one section.
  tl::expected<InfoFields, Error> ReadInfo(Millis limit);
  tl::expected<InfoFields, Error> ReadInfo(std::string_view section, Millis limit);
  tl::expected<WallTime, Error> ReadTime(Millis limit);
  tl::expected<std::optional<std::string>, Error> ReadSentinel(Millis limit);
  // Ask, then wait: so that several nodes can be asked at the same time.
  void AskLook(std::span<const std::string> names, Millis limit);
  tl::expected<NodeSight, Error> AwaitLook(std::size_t names);
  tl::expected<HealPage, Error> Scan(const std::string& cursor, Millis limit);
  tl::expected<std::vector<bool>, Error> Heal(std::string_view sentinel,
                                              std::span<const HealWrite> writes, Millis limit);
  // The node's sentinel afterwards.
  tl::expected<std::optional<std::string>, Error> Write(const SentinelWrite& write, Millis limit);

  [[nodiscard]] const std::string& address() const { return options_.address.text; }

 private:
  void OnStep(NodeSession::Step step) override;
  [[nodiscard]] bool Wanted() const override { return false; }  // no second connection

  void Ask(std::string_view request, Millis limit);
  // Until the node is prepared or has answered.
  tl::expected<void, Error> Await();
  // The answer, which is no error.
  tl::expected<ReplyPtr, Error> AwaitReply();
  tl::expected<std::string, Error> AwaitText();
  template <typename Parsed>
  tl::expected<Parsed, Error> Checked(tl::expected<Parsed, std::string> parsed) const;
  [[nodiscard]] Error Trouble(std::string what, std::string hint) const;

  asio::io_context& io_;
  const ConnectionOptions options_;
  bool answered_ = false;
  ReplyPtr reply_;
  std::optional<Error> lost_;  // why the connection ended
  Millis limit_{};             // of the call that is out
  std::optional<SessionPump> pump_;
};

}  // namespace fencepost::locking
