// One node for a command that works on the store: asked and waited for, one connection, which is
// not made again once it broke. Not for clients of the lock (connection.h). One thread, which must
// be the one that runs the io_context, and runs it only through these calls.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
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
#include "locking/redis/node/connection.h"
#include "locking/redis/options.h"
#include "locking/redis/session/transport.h"

struct redisReader;
struct redisReply;

namespace fencepost::locking {

struct RawReplyFree {
  void operator()(redisReply* reply) const;
};
using RawReply = std::unique_ptr<redisReply, RawReplyFree>;

class RawNode final : private Transport::Listener {
 public:
  RawNode(asio::io_context& io, const RedisOptions& redis, std::size_t index);
  ~RawNode();
  RawNode(const RawNode&) = delete;
  RawNode& operator=(const RawNode&) = delete;

  using Info = std::map<std::string, std::string, std::less<>>;

  // Connects, logs in, loads the scripts. Errors: why the node is of no use.
  tl::expected<void, Error> Connect(Millis limit);
  // INFO's fields by name, of the sections that tell how a node stands, or of one section.
  tl::expected<Info, Error> ReadInfo(Millis limit);
  tl::expected<Info, Error> ReadInfo(std::string_view section, Millis limit);
  tl::expected<WallTime, Error> ReadTime(Millis limit);
  tl::expected<std::optional<std::string>, Error> ReadSentinel(Millis limit);
  // Ask, then wait: so that several nodes can be asked at the same time.
  void AskLook(std::span<const std::string> names);
  tl::expected<NodeSight, Error> AwaitLook(std::size_t names, Millis limit);
  tl::expected<HealPage, Error> Scan(const std::string& cursor, Millis limit);
  tl::expected<std::vector<bool>, Error> Heal(std::string_view sentinel,
                                              std::span<const HealWrite> writes, Millis limit);
  // What stands there afterwards.
  tl::expected<std::optional<std::string>, Error> Write(const SentinelWrite& write, Millis limit);

  [[nodiscard]] const std::string& address() const { return options_.address.text; }

 private:
  struct ReaderFree {
    void operator()(redisReader* reader) const;
  };

  void OnOpen() override;
  void OnBytes(std::string_view bytes) override;
  void OnBroken(std::string_view why) override;
  void Ask(std::initializer_list<std::string_view> words);
  // The next answer that is no error.
  tl::expected<RawReply, Error> Await(Millis limit);
  tl::expected<std::string, Error> AwaitText(Millis limit);
  [[nodiscard]] Error Trouble(std::string what, std::string_view hint) const;
  bool RunUntil(Millis limit, const std::function<bool()>& there);

  asio::io_context& io_;
  const ConnectionOptions options_;
  const std::shared_ptr<NameLookup> names_;
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<redisReader, ReaderFree> reader_;
  std::vector<RawReply> answers_;
  bool open_ = false;
  std::string broken_;
};

}  // namespace fencepost::locking
