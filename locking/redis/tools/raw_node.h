// One node for a command that reads the store: asked and waited for, one connection, which is not
// made again once it failed. Not for clients of the lock (connection.h). One thread, which must
// be the one that runs the io_context, and runs it only through these calls.
//
// A call fails with what the node answered, or with why it is unavailable: not connected, no answer
// within the call's limit, a reply that is not Redis's. Once unavailable, every call fails with the
// same error. One call is outstanding at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <tl/expected.hpp>

#include "locking/base/error.h"
#include "locking/base/types.h"
#include "locking/redis/options.h"
#include "locking/redis/session/node_probe.h"
#include "locking/redis/session/session_pump.h"

namespace fencepost::locking {

class RawNode final : private SessionPump::User {
 public:
  RawNode(asio::io_context& io, const RedisOptions& redis, std::size_t index);
  RawNode(const RawNode&) = delete;
  RawNode& operator=(const RawNode&) = delete;

  // Connects and logs in. Errors: why the node is unavailable.
  tl::expected<void, Error> Connect(Millis limit);
  // INFO's fields by name: of the sections that describe a node's state, or of one section.
  tl::expected<InfoFields, Error> ReadInfo(Millis limit);
  tl::expected<InfoFields, Error> ReadInfo(std::string_view section, Millis limit);

  [[nodiscard]] const std::string& address() const { return options_.address.text; }

 private:
  NodeSession::Step OnStep(NodeSession::Step step) override;
  [[nodiscard]] bool Wanted() const override { return false; }  // no second connection

  void Ask(std::string_view request, Millis limit);
  // Until the node is prepared or has answered.
  tl::expected<void, Error> Await();
  // The answer, which is no error.
  tl::expected<ReplyPtr, Error> AwaitReply();
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
